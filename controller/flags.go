package controller

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/weirproxy/weir/config/settings"
)

// command is what the command line asks for beside the configuration.
type command struct {
	configFile              string
	validate, version, help bool
}

const introduction = "weir-controller attaches CachePolicies to routes and tells the data plane of them.\n\n" +
	"Usage:\n  weir-controller [flags]\n\nThe API server is that of KUBECONFIG, else of the pod.\n"

// flagGroups binds every flag to its field in c or cmd. What the fields hold at the
// time is the default.
func flagGroups(c *Config, cmd *command) []settings.Group {
	return []settings.Group{
		{Title: "Attachment", Flags: attachFlags(c)},
		{Title: "Feed", Flags: feedFlags(c)},
		{Title: "Leader election", Flags: electionFlags(c)},
		{Title: "Metrics, health, logs", Flags: processFlags(c)},
		{Title: "General", Flags: generalFlags(cmd), CommandLineOnly: true},
	}
}

func attachFlags(c *Config) *pflag.FlagSet {
	fs := settings.NewFlagSet()
	fs.StringSliceVar(&c.Attach, "attach", c.Attach,
		"what the filter is attached to, by `words` divided by commas: none, or any of envoy-gateway, istio. With none the "+
			"user attaches it, and status says what to configure")
	fs.StringVar(&c.DataPlaneService, "data-plane-service", c.DataPlaneService,
		"Service of weir-extproc, as `namespace/name`; by default weir-extproc in the namespace POD_NAMESPACE")
	fs.Int32Var(&c.DataPlanePort, "data-plane-port", c.DataPlanePort, "`port` of that Service where Envoy is to call")
	fs.StringVar(&c.OwnerClusterRole, "owner-cluster-role", "",
		"`name` of a ClusterRole of this release: what the controller writes is owned by it, and goes with it; empty: it is "+
			"owned by the CachePolicies")
	fs.StringVar(&c.IstioRootNamespace, "istio-root-namespace", c.IstioRootNamespace,
		"`namespace` from which Istio takes what holds for the whole mesh")
	fs.StringVar(&c.ClusterDomain, "cluster-domain", c.ClusterDomain, "`domain` of Services, as Istio knows them")
	fs.BoolVar(&c.ListenerCertificates, "listener-certificates", false,
		"read the certificates of HTTPS listeners from their Secrets, so that detached fetches can verify those that no "+
			"public CA signed. Wants the right to get these Secrets")
	return fs
}

func feedFlags(c *Config) *pflag.FlagSet {
	fs := settings.NewFlagSet()
	fs.StringVar(&c.FeedBindAddress, "feed-bind-address", c.FeedBindAddress,
		"`address` (host:port) where the data plane asks for policies and reports. Whoever can reach it can play the data "+
			"plane: off loopback it wants mTLS")
	fs.StringVar(&c.FeedCertFile, "feed-tls-cert-file", "",
		"`file` with the certificate chain (PEM) of the feed; read again when it changes")
	fs.StringVar(&c.FeedKeyFile, "feed-tls-key-file", "", "`file` with the private key (PEM) of that certificate")
	fs.StringVar(&c.FeedClientCAFile, "feed-client-ca-file", "",
		"`file` with CAs (PEM); replicas of the data plane must show a certificate signed by one of them")
	fs.BoolVar(&c.FeedInsecure, "feed-insecure", false,
		"let the feed listen off loopback without mTLS: the network alone keeps others out")
	return fs
}

func electionFlags(c *Config) *pflag.FlagSet {
	fs := settings.NewFlagSet()
	fs.BoolVar(&c.LeaderElect, "leader-elect", c.LeaderElect,
		"let one of several replicas write; all serve the feed")
	fs.StringVar(&c.LeaderElectionNamespace, "leader-election-namespace", c.LeaderElectionNamespace,
		"`namespace` of the Lease; by default POD_NAMESPACE")
	fs.DurationVar(&c.LeaseDuration, "leader-election-lease-duration", c.LeaseDuration,
		"after how long without a sign of the leader another replica takes over")
	fs.DurationVar(&c.RenewDeadline, "leader-election-renew-deadline", c.RenewDeadline,
		"after how long without success the leader gives up")
	fs.DurationVar(&c.RetryPeriod, "leader-election-retry-period", c.RetryPeriod, "how often the Lease is tried for")
	return fs
}

func processFlags(c *Config) *pflag.FlagSet {
	fs := settings.NewFlagSet()
	fs.StringVar(&c.MetricsBindAddress, "metrics-bind-address", c.MetricsBindAddress,
		"`address` (host:port) of /metrics (Prometheus); 0: none")
	fs.StringVar(&c.HealthBindAddress, "health-probe-bind-address", c.HealthBindAddress,
		"`address` (host:port) of /healthz and /readyz; 0: none")
	fs.StringVar(&c.LogLevel, "log-level", c.LogLevel, "`level`: debug, info, warn or error")
	fs.StringVar(&c.LogFormat, "log-format", c.LogFormat, "`format`: text or json")
	return fs
}

func generalFlags(c *command) *pflag.FlagSet {
	fs := settings.NewFlagSet()
	fs.StringVar(&c.configFile, "config", "",
		"YAML `file` that sets the flags above by their names, without dashes in front; flags win")
	fs.BoolVar(&c.validate, "validate", false, "check the configuration, and exit")
	fs.BoolVar(&c.version, "version", false, "print the version and exit")
	fs.BoolVarP(&c.help, "help", "h", false, "print this help and exit")
	return fs
}

// parse reads the command line and the file it names. What comes back is not validated
// yet.
func parse(args []string, getenv func(string) string) (*Config, *command, []settings.Group, error) {
	c, cmd := defaultConfig(getenv), &command{}
	groups := flagGroups(c, cmd)
	if err := settings.Parse(groups, args); err != nil {
		return nil, nil, nil, err
	}
	if cmd.help || cmd.version || cmd.configFile == "" {
		return c, cmd, groups, nil
	}
	if err := settings.ReadFile(cmd.configFile, settings.Configurable(groups)); err != nil {
		return nil, nil, nil, fmt.Errorf("configuration: %w", err)
	}
	return c, cmd, groups, nil
}
