package extproc

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/wire"
)

const (
	// burstBytes of a streamed answer go out at once; the rest is paced, since
	// Envoy takes all we send, whether its client reads or not.
	burstBytes = 1 << 20
	// paceBytes per second is the pace of the rest, per stream.
	paceBytes = 64 << 20
	// stallAfter is how long a follower bears a body that does not grow before a
	// detached fetch takes the slow leader's place.
	stallAfter = 2 * time.Second
)

// pacer spreads what is sent after the first burst over time.
type pacer struct {
	sent    int64
	resumed time.Time // when the burst was over
}

// pause waits until n more bytes may go.
func (p *pacer) pause(ctx context.Context, n int) error {
	p.sent += int64(n)
	if p.sent <= burstBytes {
		return nil
	}
	if p.resumed.IsZero() {
		p.resumed = time.Now()
	}
	due := p.resumed.Add(time.Duration(p.sent-burstBytes) * time.Second / paceBytes)
	wait := time.Until(due)
	if wait < time.Millisecond {
		return ctx.Err()
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tail answers with e: its head, then its body as it comes. An answer that breaks
// off ends with a gRPC error, so that the client sees it break.
func (s *session) tail(e *effect) error {
	if err := s.stream.SendMsg(e.reply); err != nil {
		return err
	}
	ctx := s.stream.Context()
	pace := new(pacer)
	var held []byte // the last chunk, until it is known whether it is the last
	for i := 0; ; {
		chunk, state, changed := e.entry.Body.Next(i)
		if chunk != nil {
			if i++; pace != nil && e.entry.Body.Trimmed() {
				pace = nil // who lags behind a body that is only passed along loses it
			}
			if held != nil {
				if err := s.sendChunk(ctx, held, false, pace); err != nil {
					return err
				}
			}
			held = chunk
			continue
		}
		switch state {
		case store.BodyWhole:
			if err := s.sendChunk(ctx, held, true, pace); err != nil {
				return err
			}
			return errClosed
		case store.BodyOpen:
			if held != nil {
				if err := s.sendChunk(ctx, held, false, pace); err != nil {
					return err
				}
				held = nil
			}
			if err := s.awaitBody(ctx, changed); err != nil {
				return err
			}
		default:
			return broken(fmt.Errorf("body: %w", bodyErr(e.entry.Body, state)))
		}
	}
}

func bodyErr(b *store.Body, state store.BodyState) error {
	if state == store.BodyLagged {
		return store.ErrLagged
	}
	return b.Err()
}

// awaitBody waits for more of a body. If its writer is slow and a detached fetch
// is possible, that takes over, for this follower and all others.
func (s *session) awaitBody(ctx context.Context, changed <-chan struct{}) error {
	t := time.NewTimer(stallAfter)
	defer t.Stop()
	for {
		select {
		case <-changed:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
			if s.waiter != nil && s.m.refillable() {
				if lead, ok := s.waiter.Supersede(time.Now(), stallAfter); ok {
					beside := *s.ownJob()
					beside.alone = true
					s.svc.startRefill(lead, &beside, nil, nil)
				}
			}
		}
	}
}

// sendChunk sends a part of a body; without a pacer at once.
func (s *session) sendChunk(ctx context.Context, chunk []byte, end bool, pace *pacer) error {
	if s.waiter != nil {
		s.waiter.Took(len(chunk))
	}
	if pace != nil {
		if err := pace.pause(ctx, len(chunk)); err != nil {
			return err
		}
	}
	return s.stream.SendMsg(wire.StreamChunk(chunk, end))
}

// sendParts answers with a head and the given parts of a whole body.
func (s *session) sendParts(e *effect) error {
	if err := s.stream.SendMsg(e.reply); err != nil {
		return err
	}
	var pace pacer
	for p := range e.parts {
		for len(p) > 0 {
			n := min(len(p), wire.ChunkSize)
			if err := s.sendChunk(s.stream.Context(), p[:n], false, &pace); err != nil {
				return err
			}
			p = p[n:]
		}
	}
	if err := s.stream.SendMsg(wire.StreamChunk(nil, true)); err != nil {
		return err
	}
	return errClosed
}

// broken is the gRPC error that makes an answer that has begun break visibly.
func broken(err error) error {
	return status.Error(codes.Aborted, "weir: the answer broke off: "+err.Error())
}
