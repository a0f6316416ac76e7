package e2e_test

import (
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestFleetChaos: processes are killed, stopped for longer than a lease lives, and cut off; Redis freezes, loses
// everything and starts again; all of it while content changes, is invalidated and is asked for. Nobody ever gets what
// was invalid when it asked, or half an answer; afterwards the processes are one cache again and hold nothing more.
// From reference cases 26 and 28.
func TestFleetChaos(t *testing.T) {
	f := startFleet(t)
	troubles := 7 // each kind once
	if full() {
		troubles = 70
	}
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	draw := rand.New(rand.NewPCG(uint64(seed), 0))
	c := &churn{fleet: f, rough: true}
	var over atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.run(over.Load)
	}()
	for i := range troubles {
		c.trouble(i, f.replicas[draw.IntN(len(f.replicas))], time.Duration(200+draw.IntN(1500))*time.Millisecond)
		time.Sleep(time.Duration(draw.IntN(1000)) * time.Millisecond)
	}
	f.inTouch()
	sure := c.writes.Load()
	f.replicas[0].eventually("invalidations are confirmed again",
		func() bool { return c.writes.Load() > sure+20 || t.Failed() })
	over.Store(true)
	<-ended
	if c.reads.Load() < 100 || c.writes.Load() < 20 {
		t.Error("there was too little traffic for anything to be seen")
	}
	f.sharesAgain("/again/chaos")
	f.settles()
}

// trouble makes one kind of trouble for a time.
func (c *churn) trouble(kind int, r *replica, lasting time.Duration) {
	defer func(began time.Time) {
		c.t.Logf("%s trouble %d with %s for %v", time.Now().Format(time.StampMicro), kind%7, r.name, time.Since(began))
	}(time.Now())
	switch kind % 7 {
	case 0: // as by a power cut
		c.restart(r, r.weir.Kill)
	case 1:
		c.restart(r, r.weir.Terminate)
	case 2: // longer than a lease lives, and than it takes to be taken for dead
		r.weir.Signal(syscall.SIGSTOP)
		time.Sleep(leaseLife + lasting)
		r.weir.Signal(syscall.SIGCONT)
	case 3: // one is cut off
		r.proxy.Mute(true)
		time.Sleep(leaseLife + lasting)
		r.proxy.Mute(false)
	case 4:
		c.redis.Freeze()
		time.Sleep(lasting)
		c.redis.Thaw()
	case 5: // another history: nothing was written to disk
		c.redis.Stop()
		time.Sleep(lasting)
		c.redis.Start()
	case 6: // the same history, and everything gone
		c.redis.Do("FLUSHALL")
	}
}

// restart ends a replica and starts it again, with nothing in memory.
func (c *churn) restart(r *replica, end func()) {
	end()
	c.starting.Lock()
	defer c.starting.Unlock()
	r.start()
}
