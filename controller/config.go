package controller

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weirproxy/weir/controller/feed"
)

// Config is the effective configuration of weir-controller: defaults, then the file of
// --config, then flags. docs/reference/controller-flags.md describes each field under
// the flag's name.
type Config struct {
	FeedBindAddress  string
	FeedCertFile     string
	FeedKeyFile      string
	FeedClientCAFile string
	FeedInsecure     bool

	MetricsBindAddress string // 0 or empty: none
	HealthBindAddress  string // 0 or empty: none

	LeaderElect             bool
	LeaderElectionNamespace string
	LeaseDuration           time.Duration
	RenewDeadline           time.Duration
	RetryPeriod             time.Duration

	Attach           []string
	DataPlaneService string // namespace/name
	DataPlanePort    int32

	OwnerClusterRole string

	ListenerCertificates bool

	IstioRootNamespace string
	ClusterDomain      string

	LogLevel  string
	LogFormat string
}

// attachNone is the word of --attach for: the user attaches the filter.
const attachNone = "none"

func defaultConfig(getenv func(string) string) *Config {
	c := &Config{
		FeedBindAddress: ":18000", MetricsBindAddress: ":8080", HealthBindAddress: ":8081",
		LeaderElect: true, LeaderElectionNamespace: getenv("POD_NAMESPACE"),
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		Attach: []string{attachNone}, DataPlanePort: 9002, IstioRootNamespace: "istio-system",
		ClusterDomain: "cluster.local", LogLevel: "info", LogFormat: "text",
	}
	if namespace := getenv("POD_NAMESPACE"); namespace != "" {
		c.DataPlaneService = namespace + "/weir-extproc"
	}
	return c
}

// Validate reports every fault of the configuration.
func (c *Config) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if _, err := c.dataPlane(); err != nil {
		faults = append(faults, err)
	}
	if c.DataPlanePort < 1 || c.DataPlanePort > 65535 {
		fault("--data-plane-port: want a port, 1 to 65535")
	}
	if slices.Contains(c.Attach, attachNone) && len(c.Attach) > 1 {
		fault("--attach: none stands alone")
	}
	for _, name := range c.Attach {
		if name != attachNone && !slices.Contains(c.attacherNames(), name) {
			fault("--attach: %q is not known; want none, %s", name, strings.Join(c.attacherNames(), ", "))
		}
	}
	if c.LeaderElect && c.LeaderElectionNamespace == "" {
		fault("--leader-election-namespace: needed, as POD_NAMESPACE is not set; or --leader-elect=false " +
			"if this replica is the only one")
	}
	inOrder := c.RetryPeriod > 0 && c.RenewDeadline > c.RetryPeriod*6/5 && c.LeaseDuration > c.RenewDeadline
	if c.LeaderElect && !inOrder {
		fault("--leader-election-lease-duration must be above the renew deadline, and that above 1.2 retry periods")
	}
	faults = append(faults, c.validateFeed())
	return errors.Join(faults...)
}

func (c *Config) validateFeed() error {
	host, _, err := net.SplitHostPort(c.FeedBindAddress)
	if err != nil {
		return fmt.Errorf("--feed-bind-address: want host:port or :port: %w", err)
	}
	files := []string{c.FeedCertFile, c.FeedKeyFile, c.FeedClientCAFile}
	given := len(files) - len(slices.DeleteFunc(slices.Clone(files), func(s string) bool { return s != "" }))
	switch loopback := net.ParseIP(host).IsLoopback() || host == "localhost"; {
	case c.FeedInsecure && given > 0:
		return errors.New("--feed-insecure contradicts the --feed-tls files")
	case c.FeedInsecure:
		return nil
	case given == 0 && !loopback:
		return errors.New("--feed-bind-address is not loopback: it wants --feed-tls-cert-file, --feed-tls-key-file and " +
			"--feed-client-ca-file; or --feed-insecure, if the network alone keeps others out")
	case given > 0 && given < len(files):
		return errors.New("--feed-tls-cert-file, --feed-tls-key-file and --feed-client-ca-file go together")
	}
	return nil
}

// dataPlane is the Service of weir-extproc.
func (c *Config) dataPlane() (types.NamespacedName, error) {
	namespace, name, ok := strings.Cut(c.DataPlaneService, "/")
	if !ok || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1035Label(name)) > 0 {
		return types.NamespacedName{}, fmt.Errorf("--data-plane-service: want namespace/name of the Service of "+
			"weir-extproc, got %q", c.DataPlaneService)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// tls reports whether the feed speaks TLS.
func (c *Config) tls() bool { return c.FeedCertFile != "" }

// check opens what the configuration names, for --validate.
func (c *Config) check(log *slog.Logger) error {
	if !c.tls() {
		return nil
	}
	_, err := feed.TLSFiles{Cert: c.FeedCertFile, Key: c.FeedKeyFile, ClientCA: c.FeedClientCAFile}.Credentials(log)
	return err
}
