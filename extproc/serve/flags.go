package serve

import (
	"github.com/spf13/pflag"

	"github.com/weirproxy/weir/config/settings"
)

// command is what the command line asks for beside the configuration.
type command struct {
	configFile              string
	validate, version, help bool
}

// flagGroups binds every flag to its field in cfg or cmd. What the fields hold
// at the time is the default.
func flagGroups(cfg *Config, cmd *command) []settings.Group {
	return []settings.Group{
		{Title: "ext_proc", Flags: extProcFlags(cfg)},
		{Title: "Policies", Flags: policyFlags(cfg)},
		{Title: "Store", Flags: storeFlags(cfg)},
		{Title: "Fleet", Flags: fleetFlags(cfg)},
		{Title: "Refill and warm-up", Flags: refillFlags(cfg)},
		{Title: "Admin, metrics, health", Flags: adminFlags(cfg)},
		{Title: "Life cycle and logs", Flags: lifeCycleFlags(cfg)},
		{Title: "General", Flags: generalFlags(cmd), CommandLineOnly: true},
	}
}

func extProcFlags(c *Config) *pflag.FlagSet {
	fs := settings.NewFlagSet()
	fs.StringVar(&c.GRPCBindAddress, "grpc-bind-address", c.GRPCBindAddress,
		"`address` where Envoy's ext_proc filter calls: host:port or unix:///path. Whoever can reach it can play Envoy")
	fs.StringVar(&c.GRPCTLS.CertFile, "grpc-tls-cert-file", "",
		"`file` with the certificate chain (PEM) for the ext_proc port; read again when it changes")
	fs.StringVar(&c.GRPCTLS.KeyFile, "grpc-tls-key-file", "", "`file` with the private key (PEM) of that certificate")
	fs.StringVar(&c.GRPCTLS.ClientCAFile, "grpc-client-ca-file", "",
		"`file` with CAs (PEM); callers must show a certificate signed by one of them (mTLS)")
	fs.BoolVar(&c.GRPCInsecure, "grpc-insecure", false,
		"let the ext_proc port listen off loopback without mTLS: the network alone keeps others out")
	fs.DurationVar(&c.GRPCMaxConnectionAge, "grpc-max-connection-age", 0,
		"close connections after this time, give or take 10 %, so that load spreads over new replicas; 0: never")
	fs.DurationVar(&c.GRPCMaxConnectionAgeGrace, "grpc-max-connection-age-grace", c.GRPCMaxConnectionAgeGrace,
		"how long streams of such a connection may still go on")
	fs.DurationVar(&c.EnvoyMessageTimeout, "envoy-message-timeout", c.EnvoyMessageTimeout,
		"message_timeout of Envoy's filter, which weir cannot see")
	fs.DurationVar(&c.EnvoyMaxMessageTimeout, "envoy-max-message-timeout", c.EnvoyMaxMessageTimeout,
		"max_message_timeout of Envoy's filter; 0: not set there. "+
			"A hold ends 200ms before the usable limit")
	return fs
}

func policyFlags(c *Config) *pflag.FlagSet {
	fs := settings.NewFlagSet()
	fs.StringVar(&c.PolicyDir, "policy-dir", "",
		"`directory` of CachePolicy files (YAML), watched; a file that is not valid leaves what was in use")
	fs.StringVar(&c.ControllerAddress, "controller-address", "",
		"`address` (host:port) of weir-controller's feed, instead of --policy-dir; all addresses of the host are its "+
			"replicas")
	fs.StringVar(&c.ControllerCAFile, "controller-ca-file", "",
		"`file` with the CAs (PEM) of the controller's certificate; read for each connection")
	fs.StringVar(&c.ControllerTLS.CertFile, "controller-tls-cert-file", "",
		"`file` with the certificate chain (PEM) to show to the controller (mTLS); read for each connection")
	fs.StringVar(&c.ControllerTLS.KeyFile, "controller-tls-key-file", "",
		"`file` with the private key (PEM) of that certificate")
	fs.StringVar(&c.ControllerServerName, "controller-server-name", "",
		"`name` that the controller's certificate must have; empty: the host of --controller-address")
	fs.DurationVar(&c.ControllerWait, "controller-wait", c.ControllerWait,
		"how long to wait with being ready for the controller's first word; without it requests pass by")
	return fs
}

func storeFlags(c *Config) *pflag.FlagSet {
	fs := settings.NewFlagSet()
	fs.Var(&c.MemoryLimit, "memory-limit",
		"what the memory store may hold, headers, bodies, keys and overhead: a `size` such as 64Mi, "+
			"or a share of the memory of the cgroup (without one: of the machine)")
	return fs
}

func fleetFlags(c *Config) *pflag.FlagSet {
	fs := settings.NewFlagSet()
	fs.Var(&c.RedisURL, "redis-url",
		"Redis through which replicas are one cache, as a `URL`: redis://[user@]host[:port][/db], "+
			"redis+sentinel://host,…/master or redis+cluster://host,…; rediss for TLS. Wants --secret-file; "+
			"empty: this process is alone")
	fs.StringVar(&c.RedisPasswordFile, "redis-password-file", "",
		"`file` with the password for Redis; read for each connection")
	fs.StringVar(&c.RedisCAFile, "redis-ca-file", "",
		"`file` with the CAs (PEM) of Redis's certificate; empty: those of the system")
	fs.StringVar(&c.RedisOutage, "redis-outage", c.RedisOutage,
		"what to do `while` Redis does not answer: Fetch (each replica coalesces for itself and asks the origin) or "+
			"Shed (nothing that replicas share is fetched: a stale copy or 503 stands in)")
	fs.StringVar(&c.ReplicaName, "replica-name", "",
		"`name` of this process in the fleet, which no other may have; empty: the host's name and a random part")
	return fs
}

func refillFlags(c *Config) *pflag.FlagSet {
	fs := settings.NewFlagSet()
	fs.StringVar(&c.RefillAddress, "refill-address", "",
		"`address` where detached fetches enter Envoy (host:port or unix:///path): a listener without the filter, "+
			"or the same one; empty: none, and the request that won carries the fetch")
	fs.StringVar(&c.SecretFile, "secret-file", "",
		"`file` with keys for refill tokens and for what replicas share: one hex key of at least 32 bytes a line, "+
			"newest first, old ones still accepted; the same for all replicas; read again when it changes; "+
			"empty: a key of this process alone")
	fs.StringVar(&c.WarmFile, "warm-file", "",
		"`file` with URLs to load before ready: one a line, headers indented below; wants --refill-address")
	fs.DurationVar(&c.WarmTimeout, "warm-timeout", c.WarmTimeout,
		"how long to wait with being ready for --warm-file; the rest is loaded after that")
	fs.Float64Var(&c.WarmRate, "warm-rate", c.WarmRate, "URLs per second that a warm-up loads at most")
	fs.IntVar(&c.WarmConcurrency, "warm-concurrency", c.WarmConcurrency, "URLs that a warm-up loads at a time at most")
	fs.Float64Var(&c.RampRate, "ramp-rate", 0,
		"fetches per second and policy that reach the origin at first after a cold start, and after an invalidation of "+
			"everything or of a namespace, policy or host; the most popular go first; 0: only originLimits bound them")
	fs.DurationVar(&c.RampDuration, "ramp-duration", c.RampDuration,
		"how long that lasts: the rate grows to a hundred times --ramp-rate within it, then there is no bound")
	return fs
}

func adminFlags(c *Config) *pflag.FlagSet {
	fs := settings.NewFlagSet()
	fs.StringVar(&c.AdminBindAddress, "admin-bind-address", c.AdminBindAddress,
		"`address` (host:port) of the admin API and pprof; empty: none. Off loopback it wants a token and TLS")
	fs.StringVar(&c.AdminTokenFile, "admin-token-file", "",
		"`file` with the token that admin requests must carry (Authorization: Bearer); read again when it changes")
	fs.StringVar(&c.AdminTLS.CertFile, "admin-tls-cert-file", "",
		"`file` with the certificate chain (PEM) for the admin port; read again when it changes")
	fs.StringVar(&c.AdminTLS.KeyFile, "admin-tls-key-file", "", "`file` with the private key (PEM) of that certificate")
	fs.StringVar(&c.MetricsBindAddress, "metrics-bind-address", c.MetricsBindAddress,
		"`address` (host:port) of /metrics (Prometheus); empty: none")
	fs.StringVar(&c.HealthBindAddress, "health-probe-bind-address", c.HealthBindAddress,
		"`address` (host:port) of /healthz and /readyz; empty: none. The ext_proc port answers gRPC health checks too")
	return fs
}

func lifeCycleFlags(c *Config) *pflag.FlagSet {
	fs := settings.NewFlagSet()
	fs.DurationVar(&c.DrainDelay, "drain-delay", c.DrainDelay,
		"how long to go on serving after SIGTERM while not ready, so that Envoy stops sending")
	fs.DurationVar(&c.DrainTimeout, "drain-timeout", c.DrainTimeout,
		"how long streams may then take to end before they are cut")
	fs.StringVar(&c.LogLevel, "log-level", c.LogLevel, "`level`: debug, info, warn or error")
	fs.StringVar(&c.LogFormat, "log-format", c.LogFormat, "`format`: text or json")
	return fs
}

func generalFlags(c *command) *pflag.FlagSet {
	fs := settings.NewFlagSet()
	fs.StringVar(&c.configFile, "config", "",
		"YAML `file` that sets the flags above by their names, without dashes in front; flags win")
	fs.BoolVar(&c.validate, "validate", false, "check the configuration and the policies, and exit")
	fs.BoolVar(&c.version, "version", false, "print the version and exit")
	fs.BoolVarP(&c.help, "help", "h", false, "print this help and exit")
	return fs
}

// introduction is what --help begins with.
const introduction = "weir-extproc is an HTTP response cache that Envoy calls through its ext_proc filter.\n\n" +
	"Usage:\n  weir-extproc --policy-dir DIR [flags]\n  weir-extproc --controller-address HOST:PORT [flags]\n"
