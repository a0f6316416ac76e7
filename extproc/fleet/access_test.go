package fleet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirproxy/weir/extproc/fleet/redistest"
	"github.com/weirproxy/weir/extproc/store/redis"
)

// aclRules are what weir's user in Redis needs, as docs/design/0005-fleet.md says.
const aclRules = "~weir:* &weir:* -@all +@read +@write +@pubsub +evalsha +eval +ping +time +info"

// TestLeastPrivilege: over TLS, as a user that may do no more than it needs, with a
// password from a file.
func TestLeastPrivilege(t *testing.T) {
	t.Parallel()
	user := append([]string{"--user", "default", "off", "--user", "weir", "on", ">secret"}, strings.Fields(aclRules)...)
	server, ca := redistest.StartTLS(t, user...)
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := redis.ParseURL("rediss://weir@"+server.Addr, password, ca)
	if err != nil {
		t.Fatal(err)
	}
	o.ReadTimeout, o.WriteTimeout, o.DialTimeout = patience, patience, patience
	c := redis.Connect(o)
	t.Cleanup(func() { _ = c.Close() })
	a, b := join(t, c, "a", nil), join(t, c, "b", nil)
	b.run(t)
	claim := claimOf("/")
	want := strings.Repeat("x", 200_000)
	l := a.granted(t, claim)
	end := b.waits(t.Context(), claim, b.wants(t, claim, Held))
	a.commits(t, l, a.answer(claim, want))
	if got := <-end; got.State != Found || content(got.Entry) != want {
		t.Errorf("waiting ended with %v (%v)", got.State, got.Err)
	}
	if err := l.renew(); err != nil && !strings.Contains(err.Error(), "another's") {
		t.Errorf("renew: %v", err)
	}
	other := a.granted(t, claimOf("/other"))
	a.settles(t, other, FetchFailed)
	r, err := a.Invalidate(t.Context(), Invalidation{Kind: ByAll, Mode: Hard})
	if err != nil || r.Confirmed != 2 {
		t.Errorf("receipt %+v, %v", r, err)
	}
	mustNotEnter(t, server, password, ca)
	if err := a.Delete(t.Context(), claim.Key); err != nil {
		t.Errorf("Delete: %v", err)
	}
	if b.Fleet.Stats().Wakes == 0 {
		t.Error("no wake-ups came")
	}
	if history, _ := a.knows(); len(history) < 50 {
		t.Errorf("history %q has no replication ID", history)
	}

}

// mustNotEnter tries what must not be let in.
func mustNotEnter(t *testing.T, server *redistest.Server, password, ca string) {
	t.Helper()
	for name, url := range map[string]string{"no TLS": "redis://weir@", "another password": "rediss://weir:wrong@"} {
		caFile := ca
		if strings.HasPrefix(url, "redis:") {
			caFile = ""
		}
		o, err := redis.ParseURL(url+server.Addr, "", caFile)
		if err != nil {
			t.Fatal(err)
		}
		c := redis.Connect(o)
		t.Cleanup(func() { _ = c.Close() })
		if err := c.Ping(t.Context()).Err(); err == nil {
			t.Errorf("%s: let in", name)
		}
	}
	o, err := redis.ParseURL("rediss://weir@"+server.Addr, password, "")
	if err != nil {
		t.Fatal(err)
	}
	unknown := redis.Connect(o)
	t.Cleanup(func() { _ = unknown.Close() })
	if err := unknown.Ping(t.Context()).Err(); err == nil {
		t.Error("a certificate of an unknown CA is taken")
	}
}
