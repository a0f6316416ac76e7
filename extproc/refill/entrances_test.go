package refill

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/httpcache"
)

// TestEntranceIsChosen: the first that serves scheme and host; each has one Fetcher as long as it is kept.
func TestEntranceIsChosen(t *testing.T) {
	t.Parallel()
	e := NewEntrances(Options{})
	shop := &cachepolicy.Entrance{Name: "shop", Address: "gw:80", Scheme: "http", Hosts: []string{"*.example"}}
	any80 := &cachepolicy.Entrance{Name: "any80", Address: "gw:8080", Scheme: "http"}
	any443 := &cachepolicy.Entrance{Name: "any443", Address: "gw:443", Scheme: "https"}
	all := []*cachepolicy.Entrance{shop, any80, any443}
	for _, tc := range []struct{ scheme, authority, want string }{
		{"http", "a.example", "gw:80"}, {"http", "a.test", "gw:8080"}, {"https", "a.example", "gw:443"}, {"ws", "a.example", ""},
	} {
		got := ""
		if f := e.For(all, tc.scheme, tc.authority); f != nil {
			got = f.opts.Addr
			if e.For(all, tc.scheme, tc.authority) != f {
				t.Errorf("%+v: another Fetcher each time", tc)
			}
		}
		if got != tc.want {
			t.Errorf("%+v: through %q", tc, got)
		}
	}
	if e.For(nil, "http", "a.example") != nil || e.For([]*cachepolicy.Entrance{any443}, "http", "a.example") != nil {
		t.Error("a fetch is possible without an entrance")
	}
	if e.Len() != 3 {
		t.Errorf("%d entrances are open, want 3", e.Len())
	}
	before := e.For(all, "http", "a.test")
	e.Keep([]*cachepolicy.Entrance{any80})
	if e.Len() != 1 || e.For(all, "http", "a.test") != before {
		t.Errorf("%d are open; what was kept is another", e.Len())
	}
}

func TestEntrancesAreBounded(t *testing.T) {
	t.Parallel()
	e := NewEntrances(Options{MaxConcurrent: 3})
	for i := range MaxEntrances {
		f := e.For([]*cachepolicy.Entrance{{Address: fmt.Sprint("gw:", 1+i), Scheme: "http"}}, "http", "a")
		if f == nil || f.slots != e.slots {
			t.Fatal("no Fetcher, or one with a bound of its own")
		}
	}
	if e.For([]*cachepolicy.Entrance{{Address: "gw:9999", Scheme: "http"}}, "http", "a") != nil {
		t.Error("one more is open")
	}
	e.Keep(nil)
	if e.Len() != 0 {
		t.Errorf("%d are open", e.Len())
	}
}

// TestEntranceWithTLS: the server name is the request's host, and the certificate is verified by the entrance's CA.
func TestEntranceWithTLS(t *testing.T) {
	t.Parallel()
	var names []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		names = append(names, r.TLS.ServerName+" "+r.Host)
		_, _ = w.Write([]byte("page"))
	}))
	defer server.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	address := strings.TrimPrefix(server.URL, "https://")
	get := func(entrance *cachepolicy.Entrance, authority string) error {
		e := NewEntrances(Options{})
		defer e.Keep(nil)
		f := e.For([]*cachepolicy.Entrance{entrance}, "https", authority)
		return f.Do(t.Context(), Request{Method: "GET", Scheme: "https", Authority: authority, Path: "/"}, accepting{})
	}
	known := &cachepolicy.Entrance{Address: address, Scheme: "https", CA: ca}
	if err := get(known, "example.com:8443"); err != nil { // httptest's certificate is for example.com
		t.Error(err)
	}
	if want := "example.com example.com:8443"; len(names) != 1 || names[0] != want {
		t.Errorf("the server saw %q, want %q", names, want)
	}
	if err := get(known, "other.test"); err == nil {
		t.Error("a certificate of another name is taken")
	}
	if err := get(&cachepolicy.Entrance{Address: address, Scheme: "https"}, "example.com"); err == nil {
		t.Error("a certificate of an unknown CA is taken")
	}
}

// accepting is a sink that takes all.
type accepting struct{}

func (accepting) Headers(int, httpcache.Fields, time.Time) bool { return true }
func (accepting) Body([]byte) error                             { return nil }
