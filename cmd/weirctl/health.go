package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// healthFlags are those of weirctl health.
type healthFlags struct {
	certFile, keyFile, serverName string
}

func newHealth(c *cli) *cobra.Command {
	h := &healthFlags{}
	command := &cobra.Command{
		Use:   "health ADDRESS",
		Short: "Ask the ext_proc port whether it serves",
		Long: "health asks the ext_proc port of a weir-extproc, as Envoy would, whether it serves. With --ca-file it\n" +
			"asks by TLS; with --cert-file and --key-file it shows a certificate.",
		Example: "  weirctl health weir-extproc.weir-system.svc:9002 --ca-file=ca.crt",
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(command.Context(), c.timeout)
			defer cancel()
			return c.health(ctx, h, args[0])
		},
	}
	f := command.Flags()
	f.StringVar(&h.certFile, "cert-file", "", "`file` with a certificate (PEM) to show; wants --ca-file and --key-file")
	f.StringVar(&h.keyFile, "key-file", "", "`file` with its private key (PEM)")
	f.StringVar(&h.serverName, "server-name", "", "`name` that the server's certificate must bear; empty: the address's")
	return command
}

func (c *cli) health(ctx context.Context, h *healthFlags, address string) error {
	creds, err := c.healthCredentials(h, address)
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds))
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	defer func() { _ = conn.Close() }()
	// Wait: a name that does not resolve yet, or a pod that is starting, is worth the time limit.
	answer, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	if status := answer.GetStatus(); status != healthv1.HealthCheckResponse_SERVING {
		return fmt.Errorf("%s: %s", address, status)
	}
	fmt.Fprintf(c.out, "%s serves\n", address)
	return nil
}

func (c *cli) healthCredentials(h *healthFlags, address string) (credentials.TransportCredentials, error) {
	if c.caFile == "" {
		if h.certFile != "" || h.keyFile != "" || h.serverName != "" {
			return nil, errors.New("--cert-file, --key-file and --server-name want --ca-file")
		}
		return insecure.NewCredentials(), nil
	}
	pem, err := os.ReadFile(c.caFile)
	if err != nil {
		return nil, fmt.Errorf("--ca-file: %w", err)
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%q: want host:port: %w", address, err)
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool(), ServerName: cmp.Or(h.serverName, host),
	}
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--ca-file: no certificate in %s (PEM)", c.caFile)
	}
	if h.certFile != "" || h.keyFile != "" {
		pair, err := tls.LoadX509KeyPair(h.certFile, h.keyFile)
		if err != nil {
			return nil, fmt.Errorf("--cert-file and --key-file: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return credentials.NewTLS(config), nil
}
