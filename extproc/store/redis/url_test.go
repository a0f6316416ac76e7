package redis

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	type parts struct {
		Addrs                          []string
		DB                             int
		Master, User, Password         string
		Cluster, TLS                   bool
		SentinelUser, SentinelPassword string
	}
	sentinels := []string{"a:26379"}
	for raw, want := range map[string]parts{
		"redis://cache":               {Addrs: []string{"cache:6379"}},
		"redis://cache:1234/2":        {Addrs: []string{"cache:1234"}, DB: 2},
		"redis://[::1]:1234":          {Addrs: []string{"[::1]:1234"}},
		"redis://[::1]":               {Addrs: []string{"[::1]:6379"}},
		"rediss://weir@cache":         {Addrs: []string{"cache:6379"}, User: "weir", TLS: true},
		"redis://weir:p%40ss@cache":   {Addrs: []string{"cache:6379"}, User: "weir", Password: "p@ss"},
		"redis://:pass@cache/":        {Addrs: []string{"cache:6379"}, Password: "pass"},
		"redis+cluster://a,b:1":       {Addrs: []string{"a:6379", "b:1"}, Cluster: true},
		"rediss+cluster://a":          {Addrs: []string{"a:6379"}, Cluster: true, TLS: true},
		"redis+sentinel://a,b:1/main": {Addrs: []string{"a:26379", "b:1"}, Master: "main"},
		"rediss+sentinel://u:p@a/main/3": {
			Addrs: sentinels, Master: "main", DB: 3, User: "u", Password: "p", TLS: true,
		},
		"redis+sentinel://u:p@a/m?sentinel-auth": {
			Addrs: sentinels, Master: "m", User: "u", Password: "p", SentinelUser: "u", SentinelPassword: "p",
		},
	} {
		o, err := ParseURL(raw, "", "")
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		got := parts{
			Addrs: o.Addrs, DB: o.DB, Master: o.MasterName, User: o.Username, Password: o.Password,
			Cluster: o.IsClusterMode, TLS: o.TLSConfig != nil,
			SentinelUser: o.SentinelUsername, SentinelPassword: o.SentinelPassword,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", raw, diff)
		}
		if !o.ContextTimeoutEnabled || o.MaxRetries != -1 || o.DialTimeout == 0 || o.ReadTimeout == 0 ||
			o.WriteTimeout == 0 || o.PoolTimeout == 0 {
			t.Errorf("%s: a limit is left to the library: %+v", raw, o)
		}
		c := Connect(o)
		if _, ok := c.(*goredis.ClusterClient); ok != want.Cluster {
			t.Errorf("%s: client is %T", raw, c)
		}
		_ = c.Close()
	}
}

func TestParseURLErrors(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"cache:6379":                   "before ://",
		"http://cache":                 "before ://",
		"redis+ring://cache":           "before ://",
		"redis://":                     "no host",
		"redis://a,b":                  "several hosts",
		"redis+cluster://a,,b":         "no host",
		"redis://cache:0":              `host "cache:0"`,
		"redis://cache:http":           `host "cache:http"`,
		"redis://:6379":                `host ":6379"`,
		"redis://cache/one":            `database "one"`,
		"redis://cache/-1":             `database "-1"`,
		"redis+cluster://a/1":          "a Cluster has no databases",
		"redis+sentinel://a":           "no name of a master",
		"redis+sentinel://a/m/x":       `database "x"`,
		"redis://cache?db=1":           "unknown option",
		"redis://cache?sentinel-auth":  "unknown option",
		"redis://weir:secret%zz@cache": "hexadecimal",
	} {
		_, err := ParseURL(raw, "", "")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", raw, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%v shows a password", err)
		}
	}
}

func TestFilesOfAURL(t *testing.T) {
	t.Parallel()
	write := func(content string) string {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for _, c := range []struct{ raw, password, ca, want string }{
		{"redis://u:p@cache", write("q"), "", "it has a password"},
		{"redis://cache", write(""), "", "one line"},
		{"redis://cache", write("two\nlines"), "", "one line"},
		{"redis://cache", "/does/not/exist", "", "password file"},
		{"redis://cache", "", write("x"), "say rediss://"},
		{"rediss://cache", "", write("x"), "no certificate"},
		{"rediss://cache", "", "/does/not/exist", "CA file"},
	} {
		if _, err := ParseURL(c.raw, c.password, c.ca); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}

	file := write("first\n")
	o, err := ParseURL("redis+sentinel://weir@a/main?sentinel-auth", file, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first", "second"} { // it is read again
		if err := os.WriteFile(file, []byte(want+"\r\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		user, password, err := o.CredentialsProviderContext(t.Context())
		if err != nil || user != "weir" || password != want {
			t.Errorf("%q %q, %v; want weir, %s", user, password, err, want)
		}
	}
	if o.SentinelUsername != "weir" || o.SentinelPassword != "first" {
		t.Errorf("Sentinels are asked as %q, %q", o.SentinelUsername, o.SentinelPassword)
	}
}

func FuzzParseURL(f *testing.F) {
	f.Add("redis://u:p@a:1/2")
	f.Add("rediss+sentinel://[::1],b/main/1?sentinel-auth")
	f.Add("redis+cluster://@,:")
	f.Fuzz(func(t *testing.T, raw string) {
		o, err := ParseURL(raw, "", "")
		if err == nil && len(o.Addrs) == 0 {
			t.Error("no address")
		}
	})
}
