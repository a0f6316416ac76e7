package fleet

import (
	"context"
	"errors"
	"sync/atomic"

	goredis "github.com/redis/go-redis/v9"
)

// link is the network between one replica and Redis.
type link struct{ state atomic.Int32 }

// The states of a link.
const (
	linkUp        int32 = iota
	linkDown            // nothing gets through
	linkRepliesIn       // commands arrive, answers do not
	linkStates
)

var errLink = errors.New("test: the network is down")

func (l *link) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (l *link) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		return l.cut(func() error { return next(ctx, cmd) }, cmd)
	}
}

func (l *link) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		return l.cut(func() error { return next(ctx, cmds) }, cmds...)
	}
}

func (l *link) cut(send func() error, cmds ...goredis.Cmder) error {
	state := l.state.Load()
	if state == linkUp {
		return send()
	}
	if state == linkRepliesIn {
		_ = send()
	}
	for _, cmd := range cmds {
		cmd.SetErr(errLink)
	}
	return errLink
}
