package simulation

import (
	"bytes"
	"flag"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "rewrite docs/simulation.md and docs/simulation.svg")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// play plays a day with one setup, as fast as its work can be done.
func play(t *testing.T, scene *Scene, setup *Setup) *Report {
	t.Helper()
	var report *Report
	synctest.Test(t, func(t *testing.T) {
		r, err := Run(scene, setup)
		if err != nil {
			t.Fatal(err)
		}
		report = r
	})
	return report
}

// TestDay plays the day of the page in docs, checks what it shows, and that the
// page is what comes of it.
func TestDay(t *testing.T) {
	t.Parallel()
	setups, err := Setups()
	if err != nil {
		t.Fatal(err)
	}
	scene, reports := Day(), make([]*Report, len(setups))
	t.Run("setups", func(t *testing.T) {
		for i, s := range setups {
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				reports[i] = play(t, &scene, &s)
			})
		}
	})
	for _, r := range reports {
		if r == nil {
			t.FailNow()
		}
	}
	t.Logf("\n%s", Table(reports))
	checkDay(t, reports)
	page, err := Page(&scene, reports)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "../../docs/simulation.md", page)
	compare(t, "../../docs/simulation.svg", Chart(&scene, reports))
}

// checkDay holds the layers against what they are for.
func checkDay(t *testing.T, reports []*Report) {
	t.Helper()
	none, ttl, flight, all := reports[0], reports[1], reports[2], reports[3]
	if none.Origin.Requests != none.Requests {
		t.Errorf("without a cache %d of %d requests reach the origin", none.Origin.Requests, none.Requests)
	}
	if ttl.Origin.Requests*3 > none.Origin.Requests || all.Origin.Requests > ttl.Origin.Requests {
		t.Errorf("origin requests: no cache %d, TTL only %d, all layers %d",
			none.Origin.Requests, ttl.Origin.Requests, all.Origin.Requests)
	}
	if flight.Origin.MaxPerKey*2 > none.Origin.MaxPerKey || all.Origin.MaxPerKey > 2 {
		t.Errorf("at a time for one page: no cache %d, single-flight only %d, all layers %d",
			none.Origin.MaxPerKey, flight.Origin.MaxPerKey, all.Origin.MaxPerKey)
	}
	if all.Errors*10 > ttl.Errors {
		t.Errorf("errors: TTL only %d, all layers %d", ttl.Errors, all.Errors)
	}
	if all.P99 > 300*time.Millisecond {
		t.Errorf("all layers: p99 %v", all.P99)
	}
}

// compare holds a committed file against what was made now.
func compare(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s is not what the simulation makes; rewrite it with go test ./e2e/simulation -update:\n%s",
			path, cmp.Diff(string(want), string(got)))
	}
}
