package certs

import (
	"crypto/x509"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const day = 24 * time.Hour

var start = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)

func options() Options {
	return Options{
		Namespace: "weir-system", KeysSecret: "keys", KeysKey: "keys", CASecret: "ca", Life: 365 * day,
		Certificates: []Certificate{
			{Secret: "server", Hosts: []string{"weir-controller.weir-system.svc", "weir-controller"}},
			{Secret: "client", Hosts: []string{"weir-extproc.weir-system.svc"}},
		},
	}
}

// cluster has the Secrets that the chart makes, empty.
func cluster(t *testing.T, names ...string) client.Client {
	t.Helper()
	c := fake.NewClientBuilder().Build()
	for _, name := range names {
		o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: name}}
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func data(t *testing.T, c client.Client, name string) map[string][]byte {
	t.Helper()
	s := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "weir-system", Name: name}, s); err != nil {
		t.Fatal(err)
	}
	return s.Data
}

func ensure(t *testing.T, c client.Client, o Options, now time.Time) []string {
	t.Helper()
	done, err := Ensure(t.Context(), c, o, now)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// verify holds that the certificate in one Secret is good for the host in the eyes of who has the other.
func verify(t *testing.T, certificate, trust map[string][]byte, host string, now time.Time) {
	t.Helper()
	p, err := parse(certificate["tls.crt"], certificate["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trust["ca.crt"])
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		_, err := p.cert.Verify(x509.VerifyOptions{
			DNSName: host, Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage},
		})
		if err != nil {
			t.Fatalf("on %s: %v", now.Format(time.DateOnly), err)
		}
	}
}

func TestEnsureFillsOnce(t *testing.T) {
	t.Parallel()
	c := cluster(t, "keys", "ca", "server", "client")
	want := []string{
		"keys: made a key", "ca: made a CA", "server: made a certificate", "client: made a certificate",
	}
	if diff := cmp.Diff(want, ensure(t, c, options(), start)); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	key, err := hex.DecodeString(strings.TrimSuffix(string(data(t, c, "keys")["keys"]), "\n"))
	if err != nil || len(key) < 32 {
		t.Errorf("the key has %d bytes, %v", len(key), err)
	}
	for _, host := range options().Certificates[0].Hosts {
		verify(t, data(t, c, "server"), data(t, c, "client"), host, start)
	}
	verify(t, data(t, c, "client"), data(t, c, "server"), "weir-extproc.weir-system.svc", start)
	before := data(t, c, "server")
	if done := ensure(t, c, options(), start.Add(30*day)); len(done) != 0 {
		t.Errorf("a month later: %v", done)
	}
	if diff := cmp.Diff(before, data(t, c, "server")); diff != "" {
		t.Errorf("a month later the certificate is another:\n%s", diff)
	}
}

// TestNobodyIsCutOff runs the job time and again through the ends of certificates and of the CA. Who still has the files
// of the time before understands who has today's, and the other way round; keys stay.
func TestNobodyIsCutOff(t *testing.T) {
	t.Parallel()
	c := cluster(t, "keys", "ca", "server", "client")
	o := options()
	ensure(t, c, o, start)
	keys, before := data(t, c, "keys"), map[string]map[string][]byte{}
	made := map[string]int{}
	for now := start; now.Before(start.Add(17 * 365 * day)); now = now.Add(5 * day) {
		for _, line := range ensure(t, c, o, now) {
			name, did, _ := strings.Cut(line, ": ")
			did, _, _ = strings.Cut(did, ":")
			made[name+": "+did]++
		}
		today := map[string]map[string][]byte{"server": data(t, c, "server"), "client": data(t, c, "client")}
		for _, pair := range [][2]map[string]map[string][]byte{{today, today}, {today, before}, {before, today}} {
			if len(before) == 0 {
				break
			}
			verify(t, pair[0]["server"], pair[1]["client"], "weir-controller", now)
			verify(t, pair[0]["client"], pair[1]["server"], "weir-extproc.weir-system.svc", now)
		}
		before = today
	}
	if diff := cmp.Diff(keys, data(t, c, "keys")); diff != "" {
		t.Errorf("the keys are others:\n%s", diff)
	}
	if made["ca: made a CA"] < 2 || made["server: renewed the certificate"] < 15 {
		t.Errorf("made %v", made)
	}
}

func TestEnsureMends(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(o *Options, s map[string][]byte)
		want   []string
	}{
		{"another host", func(o *Options, _ map[string][]byte) { o.Certificates[0].Hosts = []string{"other"} },
			[]string{"server: renewed the certificate: it is for [weir-controller.weir-system.svc weir-controller]"}},
		{"a certificate that is none", func(_ *Options, s map[string][]byte) { s["tls.crt"] = []byte("x") },
			[]string{"server: renewed the certificate: tls: failed to find any PEM data in certificate input"}},
		{"an emptied Secret", func(_ *Options, s map[string][]byte) { clear(s) }, []string{"server: made a certificate"}},
		{"other CAs", func(_ *Options, s map[string][]byte) { s["ca.crt"] = nil }, []string{"server: wrote the trusted CAs"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := cluster(t, "keys", "ca", "server", "client")
			o := options()
			ensure(t, c, o, start)
			s := &corev1.Secret{}
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: "weir-system", Name: "server"}, s); err != nil {
				t.Fatal(err)
			}
			tt.change(&o, s.Data)
			if err := c.Update(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, ensure(t, c, o, start.Add(day))); diff != "" {
				t.Errorf("done (-want +got):\n%s", diff)
			}
			verify(t, data(t, c, "server"), data(t, c, "client"), o.Certificates[0].Hosts[0], start.Add(day))
		})
	}
}

// TestEnsureLeavesABrokenCA holds that a CA which cannot be read is reported, and that nothing is signed then.
func TestEnsureLeavesABrokenCA(t *testing.T) {
	t.Parallel()
	c := cluster(t, "ca", "server", "client")
	s := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "weir-system", Name: "ca"}, s); err != nil {
		t.Fatal(err)
	}
	s.Data = map[string][]byte{"tls.crt": []byte("x"), "tls.key": []byte("y")}
	if err := c.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	o := options()
	o.KeysSecret = ""
	done, err := Ensure(t.Context(), c, o, start)
	if err == nil || !strings.Contains(err.Error(), "empty the Secret") || len(done) != 0 {
		t.Errorf("done %v, %v", done, err)
	}
}

func TestEnsureWantsTheSecrets(t *testing.T) {
	t.Parallel()
	_, err := Ensure(t.Context(), cluster(t, "keys", "ca", "server"), options(), start)
	if err == nil || !strings.Contains(err.Error(), "client") {
		t.Errorf("without a Secret: %v", err)
	}
}
