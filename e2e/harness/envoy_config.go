package harness

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"text/template"
	"time"
)

//go:embed envoy.yaml.tmpl
var envoyTemplate string

// EnvoyOptions says what is peculiar about one Envoy. Zero values are a production's defaults.
type EnvoyOptions struct {
	// Origins are the addresses (host:port) of the cluster "origin". Required.
	Origins []string
	// Concurrency is the number of worker threads; 0 is 2.
	Concurrency int
	// EdgePort and RefillPort are the listeners' ports; 0 takes one from the system.
	EdgePort, RefillPort int
	// Routes are tried in order; none is one route named "default" for everything.
	Routes []Route
	// FiltersBefore and FiltersAfter are HTTP filters around ext_proc on the edge, each a YAML mapping.
	FiltersBefore, FiltersAfter []string

	// MessageTimeout and MaxMessageTimeout are those of the ext_proc filter; 0 is 1 s and 60 s. A MaxMessageTimeout
	// below 0 is left out of the configuration: Envoy grants no extension.
	MessageTimeout, MaxMessageTimeout time.Duration
	// StreamIdleTimeout is the HTTP connection manager's; 0 is 300 s.
	StreamIdleTimeout time.Duration
	// AllowCustomMethods lets methods through that HTTP/1.1 does not define, which Envoy refuses otherwise.
	AllowCustomMethods bool
	// Upgrades are the protocols that clients may switch to ("websocket"); none by default, as in Envoy.
	Upgrades []string
	// OriginHTTP2 speaks HTTP/2 to the origin, as gRPC wants it.
	OriginHTTP2 bool
	// FailClosed answers 500 when weir fails, where the default lets traffic flow.
	FailClosed bool
	// ProcessingMode replaces the filter's processing_mode, a YAML flow mapping.
	ProcessingMode string
	// ForbidModeOverride is allow_mode_override: false.
	ForbidModeOverride bool
	// WeirTLS, if set, is how Envoy speaks TLS to weir.
	WeirTLS *WeirTLS

	// BufferLimitBytes is the listeners' per_connection_buffer_limit_bytes; 0 is 1 MiB.
	BufferLimitBytes uint32
	// MaxHeapBytes turns the overload manager on: near it, streams that hold much memory are reset. 0 is off.
	MaxHeapBytes uint64

	// Bootstrap, if set, is the whole configuration instead of one made from the fields above. It has listeners
	// "edge" and "refill"; SetWeir and the access log do not work with it.
	Bootstrap []byte
}

// Route is an entry of the route table of both listeners.
type Route struct {
	Name string
	// Prefix of the path; "" is "/".
	Prefix string
	// Policy, as namespace/name, is sent to weir as initial metadata x-weir-policy.
	Policy string
	// NoCache disables the filter on the edge.
	NoCache bool
	// Timeout of the route; 0 is 30 s.
	Timeout time.Duration
	// Action replaces what the route does, as one YAML entry: "direct_response: {status: 410}".
	Action string
}

// WeirTLS names PEM files. CertFile and KeyFile are Envoy's own, for mTLS.
type WeirTLS struct {
	CAFile, ServerName, CertFile, KeyFile string
}

type listenerConfig struct {
	Name   string
	Port   int
	Refill bool
}

type envoyConfig struct {
	EnvoyOptions

	Listeners                    []listenerConfig
	AccessLogPath, EndpointsPath string
}

func orDefault[T comparable](v *T, otherwise T) {
	var zero T
	if *v == zero {
		*v = otherwise
	}
}

// withDefaults returns o with each zero value that has a default replaced.
func (o EnvoyOptions) withDefaults() EnvoyOptions {
	orDefault(&o.Concurrency, 2)
	orDefault(&o.MessageTimeout, time.Second)
	orDefault(&o.MaxMessageTimeout, 60*time.Second)
	orDefault(&o.StreamIdleTimeout, 300*time.Second)
	orDefault(&o.BufferLimitBytes, 1<<20)
	orDefault(&o.ProcessingMode, "{request_header_mode: SEND, response_header_mode: SEND, "+
		"request_body_mode: NONE, response_body_mode: NONE, request_trailer_mode: SKIP, response_trailer_mode: SKIP}")
	if len(o.Routes) == 0 {
		o.Routes = []Route{{Name: "default"}}
	}
	routes := make([]Route, len(o.Routes))
	for i, r := range o.Routes {
		orDefault(&r.Prefix, "/")
		orDefault(&r.Timeout, 30*time.Second)
		orDefault(&r.Action, fmt.Sprintf("route: {cluster: origin, timeout: %s}", seconds(r.Timeout)))
		routes[i] = r
	}
	o.Routes = routes
	return o
}

// render writes the bootstrap configuration.
func (c envoyConfig) render() ([]byte, error) {
	t, err := template.New("envoy.yaml").Funcs(template.FuncMap{
		"q": quote, "seconds": seconds, "endpoint": endpoint, "indent": indent,
	}).Parse(envoyTemplate)
	if err != nil {
		return nil, fmt.Errorf("parse Envoy's template: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, c); err != nil {
		return nil, fmt.Errorf("render Envoy's configuration: %w", err)
	}
	return out.Bytes(), nil
}

func quote(s string) (string, error) {
	b, err := json.Marshal(s)
	return string(b), err
}

// seconds writes a duration as protobuf's JSON form does.
func seconds(d time.Duration) string { return fmt.Sprintf("%.9fs", d.Seconds()) }

// indent puts n spaces before every line but the first.
func indent(n int, s string) string {
	return strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n"+strings.Repeat(" ", n))
}

// endpoint writes host:port or unix:///path as an lb_endpoint.
func endpoint(address string) (string, error) {
	if path, ok := strings.CutPrefix(address, "unix://"); ok {
		quoted, err := quote(path)
		return fmt.Sprintf("endpoint: {address: {pipe: {path: %s}}}", quoted), err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("endpoint %q: %w", address, err)
	}
	quoted, err := quote(host)
	return fmt.Sprintf("endpoint: {address: {socket_address: {address: %s, port_value: %s}}}", quoted, port), err
}

// endpointsFile is the content of the file from which Envoy reads the cluster "weir".
func endpointsFile(addresses []string) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("resources:\n- \"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\n")
	out.WriteString("  cluster_name: weir\n  endpoints:\n  - lb_endpoints:\n")
	for _, address := range addresses {
		line, err := endpoint(address)
		if err != nil {
			return nil, err
		}
		out.WriteString("    - " + line + "\n")
	}
	if len(addresses) == 0 {
		return []byte(strings.Replace(out.String(), "lb_endpoints:\n", "lb_endpoints: []\n", 1)), nil
	}
	return out.Bytes(), nil
}
