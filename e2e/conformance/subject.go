package conformance

import (
	_ "embed"
	"fmt"
	"os/exec"
	"strings"

	"github.com/weirproxy/weir/e2e/harness"
)

// Subject is something the suite is run through: weir, Envoy without a cache, or another cache.
type Subject struct {
	// Name is the subject's name on the command line and in files.
	Name string
	// Title is its name on the page.
	Title string

	// start starts the subject in front of the origin (host:port).
	start func(tb harness.TB, origin string) endpoint
}

// endpoint is where a running subject is reached, and what it is.
type endpoint struct {
	url     string // scheme and authority
	version string
}

// The names of the subjects that are not peers.
const (
	WeirSubject  = "weir"  // Envoy with weir
	EnvoySubject = "envoy" // Envoy alone: what it changes, no cache behind it can mend
)

//go:embed policy.yaml
var conformancePolicy string

// FindSubject returns the subject of a name.
func FindSubject(name string) (Subject, error) {
	known := []string{}
	for _, s := range append([]Subject{
		{WeirSubject, "Envoy + weir", startWeir},
		{EnvoySubject, "Envoy", startEnvoy},
	}, Peers()...) {
		if s.Name == name {
			return s, nil
		}
		known = append(known, s.Name)
	}
	return Subject{}, fmt.Errorf("no subject %q: there are %s", name, strings.Join(known, ", "))
}

// Measurement is the outcome of running the suite through one subject.
type Measurement struct {
	Subject string  `json:"subject"`
	Version string  `json:"version"`
	Suite   string  `json:"suite"`
	Results Results `json:"results"`
}

// Measure starts the subject in front of the suite's origin and runs the suite's client through it.
func Measure(tb harness.TB, s *Suite, subject Subject) Measurement {
	tb.Helper()
	e := subject.start(tb, s.startOrigin(tb))
	return Measurement{Subject: subject.Name, Version: e.version, Suite: s.Edition, Results: s.runClient(tb, e.url)}
}

func startWeir(tb harness.TB, origin string) endpoint {
	tb.Helper()
	envoy := startHarnessEnvoy(tb, origin)
	weir := harness.StartWeir(tb, harness.WeirOptions{
		Policies:      map[string]string{"conformance.yaml": conformancePolicy},
		RefillAddress: envoy.RefillAddress(),
	})
	envoy.SetWeir(weir.GRPCAddress)
	return endpoint{url: "http://" + envoy.Address(), version: envoyVersion(tb)}
}

// startEnvoy uses the listener that has no cache filter.
func startEnvoy(tb harness.TB, origin string) endpoint {
	tb.Helper()
	envoy := startHarnessEnvoy(tb, origin)
	return endpoint{url: "http://" + envoy.RefillAddress(), version: envoyVersion(tb)}
}

func startHarnessEnvoy(tb harness.TB, origin string) *harness.Envoy {
	tb.Helper()
	return harness.StartEnvoy(tb, harness.EnvoyOptions{
		Origins: []string{origin},
		Routes:  []harness.Route{{Name: "conformance"}},
		// The suite invalidates by M-SEARCH, which Envoy refuses otherwise.
		AllowCustomMethods: true,
	})
}

// envoyVersion is the version that Envoy says it has.
func envoyVersion(tb harness.TB) string {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), harness.EnvoyBinary(tb), "--version").Output()
	if err != nil {
		tb.Fatalf("ask Envoy for its version: %v", err)
	}
	version, ok := parseEnvoyVersion(string(out))
	if !ok {
		tb.Fatalf("ask Envoy for its version: it said %q", out)
	}
	return version
}

// parseEnvoyVersion reads "<path>  version: <commit>/<number>/<state>…".
func parseEnvoyVersion(said string) (string, bool) {
	_, version, _ := strings.Cut(said, "version: ")
	parts := strings.Split(version, "/")
	if len(parts) < 2 {
		return "", false
	}
	return parts[1], true
}
