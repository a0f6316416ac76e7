package serve

import (
	"time"

	"github.com/weirproxy/weir/extproc/warm"
)

// Config is the effective configuration of weir-extproc: defaults, then the
// file of --config, then flags. docs/reference/flags.md describes each field
// under the flag's name. An empty bind address leaves that listener out.
type Config struct {
	GRPCBindAddress           string // host:port or unix:///path
	GRPCTLS                   TLSFiles
	GRPCInsecure              bool
	GRPCMaxConnectionAge      time.Duration // 0: connections live as long as Envoy keeps them
	GRPCMaxConnectionAgeGrace time.Duration

	EnvoyMessageTimeout    time.Duration // message_timeout of the filter
	EnvoyMaxMessageTimeout time.Duration // max_message_timeout of the filter; 0: not set there

	AdminBindAddress string
	AdminTLS         TLSFiles
	AdminTokenFile   string

	MetricsBindAddress string
	HealthBindAddress  string

	PolicyDir string // standalone mode

	ControllerAddress    string // host:port; instead of PolicyDir
	ControllerCAFile     string
	ControllerTLS        TLSFiles // our certificate for the controller
	ControllerServerName string   // empty: the host of the address
	ControllerWait       time.Duration

	MemoryLimit MemoryLimit

	RedisURL          RedisURL // empty: this process is alone
	RedisPasswordFile string
	RedisCAFile       string
	RedisOutage       string // Fetch | Shed
	ReplicaName       string // empty: the host's name and a random part

	SecretFile    string
	RefillAddress string
	RampRate      float64 // fetches per second and policy at first; 0: no ramp
	RampDuration  time.Duration

	WarmFile        string
	WarmTimeout     time.Duration
	WarmRate        float64 // URLs per second
	WarmConcurrency int

	DrainDelay   time.Duration
	DrainTimeout time.Duration

	LogLevel  string
	LogFormat string
}

// TLSFiles names PEM files; an empty name is a file not given.
type TLSFiles struct {
	CertFile, KeyFile string
	ClientCAFile      string // callers must show a certificate signed by one of these
}

// Enabled reports whether TLS is asked for.
func (f TLSFiles) Enabled() bool { return f.CertFile != "" || f.KeyFile != "" || f.ClientCAFile != "" }

func defaultConfig() *Config {
	return &Config{
		GRPCBindAddress:           "127.0.0.1:9002",
		GRPCMaxConnectionAgeGrace: 5 * time.Minute,
		EnvoyMessageTimeout:       time.Second,
		EnvoyMaxMessageTimeout:    time.Minute,
		RedisOutage:               outageFetch,
		AdminBindAddress:          "127.0.0.1:9004",
		MetricsBindAddress:        ":9090",
		HealthBindAddress:         ":9003",
		ControllerWait:            30 * time.Second,
		MemoryLimit:               MemoryLimit{Percent: 25},
		RampDuration:              time.Minute,
		WarmTimeout:               time.Minute,
		WarmRate:                  warm.DefaultRate,
		WarmConcurrency:           warm.DefaultConcurrency,
		DrainDelay:                5 * time.Second,
		DrainTimeout:              20 * time.Second,
		LogLevel:                  "info",
		LogFormat:                 "text",
	}
}
