package redis

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/extproc/fleet/redistest"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/store/storetest"
)

// TestSkewedReplicasAgreeOnAges: replicas whose clocks are an hour off in either
// direction neither shorten nor stretch a life.
func TestSkewedReplicasAgreeOnAges(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	clock := func(skew time.Duration) func() time.Time { return func() time.Time { return time.Now().Add(skew) } }
	skews := []time.Duration{-time.Hour, 0, time.Hour}
	for _, writer := range skews {
		for _, reader := range skews {
			began := time.Now()
			w := newStore(t, server.Client(), Options{Now: clock(writer)})
			r := newStore(t, server.Client(), Options{Now: clock(reader)})
			e := storetest.Entry("/", "x")
			e.ResponseTime = clock(writer)().Add(-20 * time.Second) // it took that long to its end
			e.InitialAge = 5 * time.Second
			if err := w.Put(t.Context(), e, 1, clock(writer)()); err != nil {
				t.Fatal(err)
			}
			key := storetest.Key("/")
			got, err := r.Get(t.Context(), &key, nil, clock(reader)())
			if err != nil || got.Entry == nil {
				t.Fatalf("writer %v, reader %v: %+v, %v", writer, reader, got, err)
			}
			age, took := got.Entry.Age(clock(reader)()), time.Since(began)
			if age < 25*time.Second || age > 25*time.Second+2*took {
				t.Errorf("writer %v, reader %v: age %v, want 25s (it took %v)", writer, reader, age, took)
			}
			if err := w.Delete(t.Context(), &key); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestWriterWithAWrongIdeaOfTheTime: it is corrected before anything is stored.
func TestWriterWithAWrongIdeaOfTheTime(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, off := range []time.Duration{-time.Hour, -time.Second, time.Second, time.Hour} {
		w, r := newStore(t, server.Client(), Options{}), newStore(t, server.Client(), Options{})
		began := time.Now()
		mustPut(t, w, entryNow("/other", "x"))
		w.clock.observe(time.Now(), time.Now().Add(off).UnixMicro())
		e := entryNow("/", "x")
		e.ResponseTime = e.ResponseTime.Add(-20 * time.Second)
		mustPut(t, w, e)
		key := storetest.Key("/")
		got, err := r.Get(t.Context(), &key, nil, time.Now())
		if err != nil || got.Entry == nil {
			t.Fatalf("off by %v: %+v, %v", off, got, err)
		}
		age, took := got.Entry.Age(time.Now()), time.Since(began)
		if age < 20*time.Second || age > 20*time.Second+2*took {
			t.Errorf("off by %v: age %v, want 20s", off, age)
		}
	}
}

// TestClockErrsTowardsOlder: an instant is never put after the true one.
func TestClockErrsTowardsOlder(t *testing.T) {
	t.Parallel()
	var c Clock
	if _, known := c.at(time.Now()); known {
		t.Error("known before anything was heard")
	}
	received := time.Unix(1000, 0)
	c.observe(received, 5_000_000) // TIME was read some time before this was received
	for d, want := range map[time.Duration]int64{0: 5_000_000, time.Second: 6_000_000, -time.Minute: -55_000_000} {
		if got, _ := c.at(received.Add(d)); got != want {
			t.Errorf("%v after: %d, want %d", d, got, want)
		}
	}
}

// TestAgesGrowByRedisTime: an entry that is read later is older by as much.
func TestAgesGrowByRedisTime(t *testing.T) {
	t.Parallel()
	m, c := miniClient(t)
	s := newStore(t, c, Options{})
	start := time.Now()
	m.SetTime(start)
	mustPut(t, s, entryNow("/", "x"))
	key := storetest.Key("/")
	get := func() *store.Entry {
		r, err := s.Get(t.Context(), &key, nil, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return r.Entry
	}
	for _, d := range []time.Duration{time.Second, 30 * time.Second, 59 * time.Second} {
		m.SetTime(start.Add(d))
		e := get()
		if e == nil {
			t.Fatalf("gone after %v", d)
		}
		if age := e.Age(time.Now()); age < d-time.Second || age > d+30*time.Second {
			t.Errorf("after %v its age is %v", d, age)
		}
	}
	m.SetTime(start.Add(2 * time.Minute))
	if e := get(); e != nil {
		t.Errorf("found after its end: %+v", e)
	}
}
