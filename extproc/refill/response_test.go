package refill

import (
	"errors"
	"net/http"
	"testing"
)

func TestNeverStored(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]bool{
		200: false, 203: false, 204: false, 206: false, 300: true, 301: true, 302: true, 303: true, 304: false,
		307: true, 308: true, 399: true, 400: false, 401: true, 403: true, 404: false, 407: true, 410: false,
		500: false, 503: false, 511: true,
	} {
		if got := NeverStored(status); got != want {
			t.Errorf("NeverStored(%d) = %t", status, got)
		}
	}
}

func TestMadeByEnvoy(t *testing.T) {
	t.Parallel()
	upstream := fields(serviceTime, "3")
	addr := serveHTTP(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(serviceTime, "3") })
	f := fetcher(t, Options{Addr: addr})
	if f.MadeByEnvoy(503, nil) {
		t.Error("told before it can be known: suppress_envoy_headers may be set")
	}
	if err := f.Do(t.Context(), get, &record{}); err != nil {
		t.Fatal(err)
	}
	for _, status := range []int{200, 304, 404, 503} {
		if f.MadeByEnvoy(status, upstream) {
			t.Errorf("%d of an upstream", status)
		}
		if got, want := f.MadeByEnvoy(status, nil), status >= 400; got != want {
			t.Errorf("%d without the mark of an upstream: %t", status, got)
		}
	}
}

func TestLoop(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		lines []string
		want  bool
	}{
		{"none", nil, false},
		{"hit", []string{"weir; hit; ttl=10"}, true},
		{"hit, as a string", []string{`"weir"; hit`}, true},
		{"stale hit behind others", []string{"origin; fwd=miss, weir; hit; ttl=-3"}, true},
		{"hit on a second line", []string{"ExampleCache; fwd=miss", "weir; hit"}, true},
		{"miss", []string{"weir; fwd=uri-miss; stored"}, false},
		{"hit=?0", []string{"weir; hit=?0"}, false},
		{"another cache", []string{"ExampleCache; hit"}, false},
		{"a longer name", []string{"weir2; hit"}, false},
		{"in another member's detail", []string{`ExampleCache; fwd=miss; detail="weir; hit"`}, false},
		{"inner list", []string{"(weir); hit"}, false},
		{"malformed", []string{"weir; hit, ;;"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			answer := "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"
			for _, line := range tt.lines {
				answer += "Cache-Status: " + line + "\r\n"
			}
			s := serveWire(t, "tcp", "127.0.0.1:0", answer+"\r\n")
			var got record
			err := fetcher(t, Options{Addr: s.addr()}).Do(t.Context(), get, &got)
			if errors.Is(err, ErrLoop) != tt.want || (err != nil) != tt.want {
				t.Errorf("Do = %v, loop %t", err, tt.want)
			}
			if (got.status == 0) != tt.want {
				t.Errorf("the sink was given status %d", got.status)
			}
		})
	}
}

func FuzzLoop(f *testing.F) {
	f.Add("weir; hit", "a; fwd=miss")
	f.Add(`"weir"; hit=1`, "((;")
	f.Fuzz(func(_ *testing.T, one, two string) {
		looped(fields("cache-status", one, "cache-status", two))
	})
}
