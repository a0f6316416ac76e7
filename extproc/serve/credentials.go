package serve

import (
	"crypto/tls"
	"fmt"
	"net"

	"google.golang.org/grpc/credentials"
)

// serverCredentials is TLS for the ext_proc port as credentials.NewTLS has it, but
// for one thing: a caller may leave out ALPN (RFC 7301). Envoy's health checks do,
// unless their tls_options name h2, which Envoy Gateway cannot be told; grpc-go
// would close the connection, and every replica would count as unhealthy. A caller
// that names protocols without h2 among them is refused by crypto/tls (but for
// http/1.1, which gets no further than the first frame).
type serverCredentials struct {
	credentials.TransportCredentials
	config *tls.Config
}

func newServerCredentials(config *tls.Config) credentials.TransportCredentials {
	return serverCredentials{TransportCredentials: credentials.NewTLS(config), config: config}
}

// ServerHandshake ends within the deadline that grpc has set on the connection.
func (c serverCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn := tls.Server(raw, c.config)
	if err := conn.Handshake(); err != nil {
		_ = raw.Close()
		return nil, nil, fmt.Errorf("TLS handshake: %w", err)
	}
	return conn, credentials.TLSInfo{
		State:          conn.ConnectionState(),
		CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity},
	}, nil
}

// Clone returns credentials that share nothing with these.
func (c serverCredentials) Clone() credentials.TransportCredentials {
	return newServerCredentials(c.config.Clone())
}
