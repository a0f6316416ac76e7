package serve

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"time"
)

// maxEnvoyTimeout is the largest message timeout Envoy accepts.
const maxEnvoyTimeout = time.Hour

// Validate returns every fault of the configuration, joined; each says what to
// do about it. It reads no file and opens no port.
func (c *Config) Validate() error {
	return errors.Join(
		c.validateGRPC(),
		c.validateEnvoyTimeouts(),
		c.validateAdmin(),
		c.validateController(),
		c.validateFleet(),
		validateBind("--metrics-bind-address", c.MetricsBindAddress),
		validateBind("--health-probe-bind-address", c.HealthBindAddress),
		c.validateWarmUp(),
		c.validateRest(),
	)
}

func (c *Config) validateGRPC() error {
	if c.GRPCBindAddress == "" {
		return errors.New("--grpc-bind-address: must not be empty; Envoy calls weir there")
	}
	faults := []error{validateTLS("--grpc-tls-cert-file", "--grpc-tls-key-file", c.GRPCTLS)}
	if c.GRPCTLS.ClientCAFile != "" && c.GRPCTLS.CertFile == "" {
		faults = append(faults, errors.New(
			"--grpc-client-ca-file: wants --grpc-tls-cert-file and --grpc-tls-key-file too"))
	}
	if c.GRPCMaxConnectionAge < 0 || c.GRPCMaxConnectionAgeGrace < 0 {
		faults = append(faults, errors.New("--grpc-max-connection-age and its grace must not be negative"))
	}
	if _, ok := unixPath(c.GRPCBindAddress); ok {
		return errors.Join(faults...)
	}
	faults = append(faults, validateBind("--grpc-bind-address", c.GRPCBindAddress))
	if !isLoopback(c.GRPCBindAddress) && c.GRPCTLS.ClientCAFile == "" && !c.GRPCInsecure {
		faults = append(faults, fmt.Errorf(
			"--grpc-bind-address %s is reachable from other machines, and whoever reaches it can play Envoy: set "+
				"--grpc-tls-cert-file, --grpc-tls-key-file and --grpc-client-ca-file (mTLS), or --grpc-insecure "+
				"where the network keeps others out", c.GRPCBindAddress))
	}
	return errors.Join(faults...)
}

func (c *Config) validateEnvoyTimeouts() error {
	var faults []error
	if c.EnvoyMessageTimeout <= 0 || c.EnvoyMessageTimeout > maxEnvoyTimeout {
		faults = append(faults, errors.New(
			"--envoy-message-timeout: must be above 0 and at most 1h, as in Envoy; "+
				"give what the filter's message_timeout says"))
	}
	if c.EnvoyMaxMessageTimeout < 0 || c.EnvoyMaxMessageTimeout > maxEnvoyTimeout {
		faults = append(faults, errors.New(
			"--envoy-max-message-timeout: must be from 0 to 1h, as in Envoy; "+
				"give what the filter's max_message_timeout says, 0 where it is not set"))
	}
	return errors.Join(faults...)
}

func (c *Config) validateAdmin() error {
	if c.AdminBindAddress == "" {
		return nil
	}
	faults := []error{
		validateBind("--admin-bind-address", c.AdminBindAddress),
		validateTLS("--admin-tls-cert-file", "--admin-tls-key-file", c.AdminTLS),
	}
	if !isLoopback(c.AdminBindAddress) && (c.AdminTokenFile == "" || !c.AdminTLS.Enabled()) {
		faults = append(faults, fmt.Errorf(
			"--admin-bind-address %s is reachable from other machines: set --admin-token-file, --admin-tls-cert-file "+
				"and --admin-tls-key-file, or bind to loopback (127.0.0.1:9004)", c.AdminBindAddress))
	}
	return errors.Join(faults...)
}

func (c *Config) validateRest() error {
	var faults []error
	if _, unix := unixPath(c.RefillAddress); !unix && c.RefillAddress != "" {
		if _, _, err := net.SplitHostPort(c.RefillAddress); err != nil {
			faults = append(faults, fmt.Errorf("--refill-address %q: want host:port or unix:///path", c.RefillAddress))
		}
	}
	if c.DrainDelay < 0 || c.DrainTimeout < 0 {
		faults = append(faults, errors.New("--drain-delay and --drain-timeout must not be negative; 0s is none"))
	}
	if _, err := parseLevel(c.LogLevel); err != nil {
		faults = append(faults, fmt.Errorf("--log-level %q: want debug, info, warn or error", c.LogLevel))
	}
	if !slices.Contains([]string{"text", "json"}, c.LogFormat) {
		faults = append(faults, fmt.Errorf("--log-format %q: want text or json", c.LogFormat))
	}
	return errors.Join(faults...)
}

func (c *Config) validateWarmUp() error {
	var faults []error
	if c.WarmFile != "" && c.RefillAddress == "" && c.ControllerAddress == "" {
		faults = append(faults, errors.New("--warm-file: wants --refill-address, through which the URLs are fetched, "+
			"or a controller, which says where"))
	}
	if c.RampRate < 0 || c.RampDuration < 0 || c.WarmTimeout < 0 {
		faults = append(faults, errors.New(
			"--ramp-rate, --ramp-duration and --warm-timeout must not be negative; 0 is none"))
	}
	if c.WarmRate <= 0 || c.WarmConcurrency <= 0 {
		faults = append(faults, errors.New("--warm-rate and --warm-concurrency must be above 0"))
	}
	return errors.Join(faults...)
}

// validateTLS wants certificate and key both, or neither.
func validateTLS(certFlag, keyFlag string, f TLSFiles) error {
	switch {
	case f.CertFile != "" && f.KeyFile == "":
		return fmt.Errorf("%s: must be set beside %s", keyFlag, certFlag)
	case f.CertFile == "" && f.KeyFile != "":
		return fmt.Errorf("%s: must be set beside %s", certFlag, keyFlag)
	}
	return nil
}

func validateBind(flag, address string) error {
	if address == "" {
		return nil
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("%s %q: want host:port, such as 127.0.0.1:9002 or :9002", flag, address)
	}
	return nil
}

// isLoopback reports whether only this machine can reach the address. A host
// name counts only if it is localhost: what another name resolves to may change.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
