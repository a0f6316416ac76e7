package feedclient

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/cachepolicy/feed/feedpb"
)

const (
	// maxControllers bounds the replicas of the controller that are reported to.
	maxControllers = 16
	// maxCommands bounds the commands of one of them that are carried out at a time.
	maxCommands = 8
	// commandTimeout bounds a command.
	commandTimeout = 30 * time.Second
)

// reportToAll keeps a control stream to every replica of the controller, until ctx
// ends.
func (c *Client) reportToAll(ctx context.Context) {
	running := map[string]bool{}
	ended := make(chan string)
	defer func() {
		for range running {
			<-ended
		}
	}()
	// listed are the addresses that the name resolves to now. A stream to one that is
	// not listed any more goes on until it breaks: name servers forget now and then.
	var listed atomic.Pointer[map[string]bool]
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case address := <-ended:
			delete(running, address)
		case <-next.C:
			if addresses, err := c.addresses(ctx); err == nil {
				now := map[string]bool{}
				for _, address := range addresses[:min(len(addresses), maxControllers)] {
					now[address] = true
				}
				listed.Store(&now)
				c.startReporters(ctx, &listed, running, ended)
			} else {
				c.opts.Logger.Debug("Nobody to report to", "error", err)
			}
			next.Reset(resolveInterval)
		}
	}
}

// startReporters starts what reports to the addresses that are new.
func (c *Client) startReporters(
	ctx context.Context, listed *atomic.Pointer[map[string]bool], running map[string]bool, ended chan<- string,
) {
	for address := range *listed.Load() {
		if running[address] {
			continue
		}
		running[address] = true
		go func() {
			c.reportTo(ctx, address, func() bool { return (*listed.Load())[address] })
			ended <- address
		}()
	}
}

// reportTo reports to one replica of the controller, as often as the stream breaks,
// until ctx ends or the address is not listed any more.
func (c *Client) reportTo(ctx context.Context, address string, listed func() bool) {
	var wait backoff
	for listed() {
		began := time.Now()
		err := c.control(ctx, address)
		if time.Since(began) > backoffMax {
			wait = backoff{}
		}
		c.opts.Logger.Debug("Reports to a replica of the controller ended", "address", address, "error", err)
		if !wait.wait(ctx) {
			return
		}
	}
}

// control is one control stream.
func (c *Client) control(ctx context.Context, address string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := c.connect(address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	stream, err := conn.NewStream(ctx,
		&grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, feedpb.ControlConnect)
	if err != nil {
		return err
	}
	pending := c.state.join()
	defer c.state.leave(pending)
	r := &reporter{
		Client: c, stream: stream, pending: pending, sent: map[string]feed.Traffic{},
		results: make(chan feed.Result, maxCommands), slots: make(chan struct{}, maxCommands),
	}
	return r.run(ctx)
}

// reporter is one control stream. run sends, and a goroutine of its own receives.
type reporter struct {
	*Client
	stream  grpc.ClientStream
	pending *pending
	sent    map[string]feed.Traffic
	results chan feed.Result
	slots   chan struct{} // a token per command that is carried out
}

func (r *reporter) run(ctx context.Context) error {
	commands, broken := make(chan feed.Command), make(chan error, 1)
	go func() { broken <- r.receive(ctx, commands) }()
	first := feed.Report{Replica: r.opts.Replica, Version: r.opts.Version, Started: r.opts.Started.UnixNano()}
	if err := r.send(first); err != nil {
		return err
	}
	synced := false
	traffic := time.NewTicker(trafficInterval)
	defer traffic.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err = <-broken:
			return err
		case <-r.pending.wake:
			err = r.sendPending(&synced)
		case <-traffic.C:
			err = r.sendTraffic()
		case result := <-r.results:
			err = r.send(feed.Report{Result: &result})
		case command := <-commands:
			err = r.carryOut(ctx, command)
		}
		if err != nil {
			return err
		}
	}
}

// sendPending says what changed; the first time that is everything.
func (r *reporter) sendPending(synced *bool) error {
	for {
		report, all := r.state.take(r.pending)
		report.Synced = all && !*synced
		if err := r.send(report); err != nil || all {
			if report.Synced {
				*synced = true
				return r.sendTraffic()
			}
			return err
		}
	}
}

// sendTraffic says which counters moved since they were last said on this stream.
func (r *reporter) sendTraffic() error {
	if r.opts.Traffic == nil {
		return nil
	}
	report := feed.Report{Traffic: map[string]feed.Traffic{}}
	for policy, now := range r.opts.Traffic() {
		if r.sent[policy] == now {
			continue
		}
		r.sent[policy], report.Traffic[policy] = now, now
		if len(report.Traffic) == feed.MaxReported {
			if err := r.send(report); err != nil {
				return err
			}
			report.Traffic = map[string]feed.Traffic{}
		}
	}
	if len(report.Traffic) == 0 {
		return nil
	}
	return r.send(report)
}

func (r *reporter) send(report feed.Report) error {
	frame, err := feedpb.Frame(report)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return r.stream.SendMsg(frame)
}

// receive takes commands in until the stream ends.
func (r *reporter) receive(ctx context.Context, commands chan<- feed.Command) error {
	for {
		var frame wrapperspb.BytesValue
		if err := r.stream.RecvMsg(&frame); err != nil {
			return err
		}
		var command feed.Command
		if err := feedpb.ReadFrame(&frame, &command); err != nil {
			return fmt.Errorf("command: %w", err)
		}
		select {
		case commands <- command:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// carryOut carries a command out behind the stream; what is too much at a time is
// refused.
func (r *reporter) carryOut(ctx context.Context, command feed.Command) error {
	select {
	case r.slots <- struct{}{}:
	default:
		return r.send(feed.Report{Result: &feed.Result{ID: command.ID, Error: "too many commands at a time"}})
	}
	go func() {
		defer func() { <-r.slots }()
		ctx, cancel := context.WithTimeout(ctx, commandTimeout)
		defer cancel()
		result := feed.Result{Error: "a command that this release does not know"}
		if command.Invalidate != nil && r.opts.Invalidate != nil {
			result = r.opts.Invalidate(ctx, *command.Invalidate)
		}
		result.ID = command.ID
		select {
		case r.results <- result:
		case <-ctx.Done():
		}
	}()
	return nil
}
