package certs

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseArgs(t *testing.T) {
	t.Parallel()
	got, err := parseArgs([]string{
		"--namespace=weir-system", "--keys=weir-keys/keys", "--ca=weir-ca", "--days=90",
		"--certificate=weir-extproc-tls=weir-extproc.weir-system.svc,weir-extproc", "--certificate=weir-envoy-tls=envoy",
	}, &bytes.Buffer{})
	want := Options{
		Namespace: "weir-system", KeysSecret: "weir-keys", KeysKey: "keys", CASecret: "weir-ca", Life: 90 * day,
		Certificates: []Certificate{
			{Secret: "weir-extproc-tls", Hosts: []string{"weir-extproc.weir-system.svc", "weir-extproc"}},
			{Secret: "weir-envoy-tls", Hosts: []string{"envoy"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestParseArgsRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ args, want string }{
		{"", "--namespace"},
		{"--namespace=n --keys=k", "--keys"},
		{"--namespace=n --certificate=a=b", "--ca"},
		{"--namespace=n --ca=c --certificate=a", "--certificate"},
		{"--namespace=n --days=0", "--days"},
		{"--namespace=n now", "unknown argument"},
		{"--namespaces=n", "unknown flag"},
	}
	for _, tt := range tests {
		if _, err := parseArgs(strings.Fields(tt.args), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %s", tt.args, err, tt.want)
		}
	}
}

func TestMainHelps(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := Main(t.Context(), []string{"--help"}, &out, &out); err != nil || !strings.Contains(out.String(), "--certificate") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// TestNoCertificateOutlivesItsCA holds for one that is signed late.
func TestNoCertificateOutlivesItsCA(t *testing.T) {
	t.Parallel()
	ca, err := newCA(start)
	if err != nil {
		t.Fatal(err)
	}
	late := start.Add(lifeOfCA - time.Hour)
	p, err := newCertificate(ca, []string{"a"}, 365*day, late)
	if err != nil || p.cert.NotAfter.After(ca.cert.NotAfter) {
		t.Errorf("the certificate ends at %v, its CA at %v; %v", p.cert.NotAfter, ca.cert.NotAfter, err)
	}
}
