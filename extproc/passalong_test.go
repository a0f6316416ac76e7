package extproc

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/extproc/store/memory"
	"github.com/weirproxy/weir/extproc/wire"
)

// slowStream is a stream that takes its time to say something, or to take what is said.
type slowStream struct {
	silentStream
	thinks, takes time.Duration
	got           int // bytes of body
}

func (s *slowStream) RecvMsg(m any) error {
	time.Sleep(s.thinks)
	return s.silentStream.RecvMsg(m)
}

func (s *slowStream) SendMsg(m any) error {
	time.Sleep(s.takes)
	p, err := decodeReply(m.(*wire.Reply))
	if err == nil {
		s.got += len(p.GetStreamedImmediateResponse().GetBodyResponse().GetBody())
	}
	return err
}

// TestFollowersOfWhatIsPassedAlong: of a body that turned out to be larger than what may be stored only a part is kept.
// A follower that takes it more slowly than it comes gets all of it none the less: the leader waits.
func TestFollowersOfWhatIsPassedAlong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const chunks = 100
		body := wire.Message{Kind: wire.KindResponseBody, Body: make([]byte, wire.ChunkSize)}
		says := []wire.Message{aGet(), {Kind: wire.KindResponseHeaders, Status: 200, CodeDetails: "via_upstream",
			Header: fieldsOf("cache-control", "max-age=9")}}
		for range chunks {
			says = append(says, body)
		}
		says[len(says)-1].EndOfStream = true
		s, registry := newService(t, memory.New(memory.Options{Limit: 1 << 20}))
		defer s.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		leader := &slowStream{thinks: time.Millisecond, silentStream: silentStream{brokenStream{ctx: ctx, says: says}}}
		follower := &slowStream{takes: 20 * time.Millisecond,
			silentStream: silentStream{brokenStream{ctx: ctx, says: []wire.Message{aGet()}}}}
		go func() {
			if err := s.process(leader); err != nil {
				t.Errorf("leader: %v", err)
			}
		}()
		time.Sleep(leader.thinks * 3 / 2) // its request is at the origin
		if err := s.process(follower); err != nil {
			t.Errorf("follower: %v", err)
		}
		synctest.Wait()
		if want := chunks * wire.ChunkSize; follower.got != want {
			t.Errorf("the follower got %d bytes, want %d", follower.got, want)
		}
		want := map[string]int{"miss": 1, "coalesced": 1, "fill too_large": 1}
		if diff := cmp.Diff(want, counted(t, registry)); diff != "" {
			t.Errorf("counted (-want +got):\n%s", diff)
		}
	})
}
