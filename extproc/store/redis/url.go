package redis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Time limits of connections: Redis is next door, or not worth waiting for.
const (
	dialTimeout = 500 * time.Millisecond
	ioTimeout   = 250 * time.Millisecond
	poolTimeout = 100 * time.Millisecond
)

// Bounds of connections.
const (
	minPoolSize  = 32
	pipelinePool = 8
	maxIdleTime  = 5 * time.Minute
)

// ParseURL returns how to connect to a Redis:
//
//	redis://[user[:password]@]host[:port][/db]
//	redis+sentinel://[user[:password]@]host[:port][,host[:port]...]/master[/db]
//	redis+cluster://[user[:password]@]host[:port][,host[:port]...]
//
// and rediss instead of redis for TLS (1.2 and up). The password may come from a
// file instead, which is read again for every connection; and certificates are
// verified by the CAs of caFile, or else by those of the system. Sentinels are
// asked with the same user and password if the URL ends with ?sentinel-auth.
// Errors show no password.
//
// What is returned sets every time limit, and no retries: those who use it know
// what may be said twice.
func ParseURL(raw, passwordFile, caFile string) (*goredis.UniversalOptions, error) {
	u, err := splitURL(raw)
	if err != nil {
		return nil, fmt.Errorf("redis url: %w", err)
	}
	o := &goredis.UniversalOptions{
		Addrs: u.hosts, DB: u.db, MasterName: u.master, IsClusterMode: u.form == "cluster",
		Username: u.user, Password: u.password,
		Protocol: 2, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		MaxRetries:               -1, DialerRetries: 1,
		DialTimeout: dialTimeout, ReadTimeout: ioTimeout, WriteTimeout: ioTimeout, PoolTimeout: poolTimeout,
		ContextTimeoutEnabled: true,
		PoolSize:              max(minPoolSize, 8*runtime.GOMAXPROCS(0)), ConnMaxIdleTime: maxIdleTime,
		PipelinePoolSize: pipelinePool,
	}
	o.MaxActiveConns = o.PoolSize
	if u.sentinelAuth {
		o.SentinelUsername, o.SentinelPassword = u.user, u.password
	}
	if err := setPassword(o, u, passwordFile); err != nil {
		return nil, err
	}
	return o, setTLS(o, u.tls, caFile)
}

// Connect returns a client for what ParseURL returned. Nothing is dialled yet.
func Connect(o *goredis.UniversalOptions) goredis.UniversalClient {
	return goredis.NewUniversalClient(o)
}

// redisURL is a URL in parts. net/url takes no list of hosts.
type redisURL struct {
	form           string // "", "sentinel" or "cluster"
	tls            bool
	user, password string
	hosts          []string
	master         string
	db             int
	sentinelAuth   bool
}

// Errors of ParseURL.
var (
	errScheme  = errors.New("want redis, redis+sentinel or redis+cluster (rediss for TLS) before ://")
	errNoHost  = errors.New("no host")
	errOneHost = errors.New("several hosts: say redis+cluster:// or redis+sentinel://")
)

func splitURL(raw string) (*redisURL, error) {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return nil, errScheme
	}
	u := &redisURL{}
	name, form, _ := strings.Cut(scheme, "+")
	u.form, u.tls = form, name == "rediss"
	if name != "redis" && name != "rediss" || form != "" && form != "sentinel" && form != "cluster" {
		return nil, errScheme
	}
	rest, query, _ := strings.Cut(rest, "?")
	switch {
	case query == "sentinel-auth" && form == "sentinel":
		u.sentinelAuth = true
	case query != "":
		return nil, errors.New("unknown option after ? (only sentinel-auth, and only with redis+sentinel)")
	}
	authority, path, _ := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		if err := u.setUser(authority[:at]); err != nil {
			return nil, err
		}
		authority = authority[at+1:]
	}
	if err := u.setHosts(authority); err != nil {
		return nil, err
	}
	return u, u.setPath(path)
}

func (u *redisURL) setUser(userinfo string) error {
	user, password, _ := strings.Cut(userinfo, ":")
	var errUser, errPassword error
	u.user, errUser = url.PathUnescape(user)
	u.password, errPassword = url.PathUnescape(password)
	if errUser != nil || errPassword != nil {
		return errors.New("user or password: % must be followed by two hexadecimal digits") // err would show them
	}
	return nil
}

func (u *redisURL) setHosts(list string) error {
	port := "6379"
	if u.form == "sentinel" {
		port = "26379"
	}
	for host := range strings.SplitSeq(list, ",") {
		if host == "" {
			return errNoHost
		}
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), port)
		}
		name, number, err := net.SplitHostPort(host)
		if n, errPort := strconv.ParseUint(number, 10, 16); err != nil || name == "" || errPort != nil || n == 0 {
			return fmt.Errorf("host %q: want host or host:port", host)
		}
		u.hosts = append(u.hosts, host)
	}
	if u.form == "" && len(u.hosts) > 1 {
		return errOneHost
	}
	return nil
}

// setPath reads what comes after the hosts: a database, or the name of the master
// that Sentinel watches and a database.
func (u *redisURL) setPath(path string) error {
	db := path
	switch u.form {
	case "cluster":
		if path != "" {
			return fmt.Errorf("path %q: a Cluster has no databases", path)
		}
	case "sentinel":
		u.master, db, _ = strings.Cut(path, "/")
		if u.master == "" {
			return errors.New("no name of a master: want redis+sentinel://host/master")
		}
	}
	if db == "" {
		return nil
	}
	n, err := strconv.ParseUint(db, 10, 31)
	if err != nil {
		return fmt.Errorf("database %q: want a number", db)
	}
	u.db = int(n)
	return nil
}

// setPassword has the password read from its file for every connection, so that
// it can be changed without a restart.
func setPassword(o *goredis.UniversalOptions, u *redisURL, file string) error {
	if file == "" {
		return nil
	}
	if u.password != "" {
		return errors.New("redis url: it has a password, and there is a password file")
	}
	password, err := readPassword(file)
	if err != nil {
		return err
	}
	if u.sentinelAuth {
		o.SentinelPassword = password
	}
	o.CredentialsProviderContext = func(context.Context) (string, string, error) {
		password, err := readPassword(file)
		return u.user, password, err
	}
	return nil
}

// maxPassword bounds a password file, in bytes.
const maxPassword = 64 << 10

func readPassword(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("redis password file: %w", err)
	}
	password := strings.TrimRight(string(b), "\r\n")
	if password == "" || len(password) > maxPassword || strings.ContainsAny(password, "\r\n") {
		return "", fmt.Errorf("redis password file %s: want one line with the password", file)
	}
	return password, nil
}

func setTLS(o *goredis.UniversalOptions, enabled bool, caFile string) error {
	switch {
	case !enabled && caFile != "":
		return errors.New("redis url: there is a CA file, but no TLS; say rediss://")
	case !enabled:
		return nil
	}
	o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile == "" {
		return nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return fmt.Errorf("redis CA file: %w", err)
	}
	o.TLSConfig.RootCAs = x509.NewCertPool()
	if !o.TLSConfig.RootCAs.AppendCertsFromPEM(pem) {
		return fmt.Errorf("redis CA file %s: no certificate (PEM) in it", caFile)
	}
	return nil
}
