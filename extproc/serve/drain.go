package serve

import (
	"time"
)

// releaseShare is the part of the drain timeout that is kept for streams to end
// after the requests still held were released.
const releaseShare = 4

// drain takes the process out of service. It says that it is not ready and goes
// on serving for the drain delay, so that Envoy learns of it and sends new
// requests elsewhere. Then it takes no new stream, and those there are may end
// within the drain timeout: held requests by the answer they wait for, or, near
// the end, by being released to the origin. What is open after that is cut.
func (p *process) drain() {
	p.log.Info("Draining", "delay", p.cfg.DrainDelay, "timeout", p.cfg.DrainTimeout,
		"streams", p.metrics.Streams(), "waiting", p.metrics.Waiting())
	p.ready.set(checkServing, errDraining)
	p.health.Shutdown()
	time.Sleep(p.cfg.DrainDelay)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		p.grpc.GracefulStop() // takes no new stream, waits for those there are
	}()
	forRelease := p.cfg.DrainTimeout / releaseShare
	if !await(stopped, p.cfg.DrainTimeout-forRelease) {
		p.log.Info("Releasing held requests", "waiting", p.metrics.Waiting())
		p.parts.release()
		if !await(stopped, forRelease) {
			p.log.Warn("Cutting streams after the drain timeout", "streams", p.metrics.Streams())
			p.grpc.Stop()
			<-stopped
			return
		}
	}
	p.log.Info("Drained")
}

// await reports whether the channel was closed within d.
func await(closed <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-closed:
		return true
	case <-timer.C:
		return false
	}
}
