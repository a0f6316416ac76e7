package redis

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

//go:embed scripts/*.lua
var scripts embed.FS

// Script is a Lua script with the parts that all scripts share in front.
type Script struct {
	name   string
	script *goredis.Script
}

// script returns one of this package's scripts.
func (s *Store) script(name string) *Script {
	return s.NewScript(name, mustRead("scripts/"+name+".lua"))
}

// NewScript returns a script that may use what clock.lua and records.lua define,
// for the packages that keep records beside the entries.
func (s *Store) NewScript(name, source string) *Script {
	text := s.opts.clockLua + mustRead("scripts/records.lua") + source
	return &Script{name: name, script: goredis.NewScript(text)}
}

func mustRead(name string) string {
	b, err := scripts.ReadFile(name)
	if err != nil {
		panic(err) // it is in the binary
	}
	return string(b)
}

// ErrReply says that a script answered in a form that it does not have.
var ErrReply = errors.New("malformed reply of a script")

// Reply is the answer of a script: Redis's time, and what else it says.
type Reply struct {
	// Now is Redis's time in microseconds since 1970, when the script ran.
	Now int64
	// At is the local time just before the script was sent.
	At time.Time
	// Clock relates this Redis's time to the local one.
	Clock *Clock
	rest  []any
}

// Run runs a script within the store's time limit.
func (s *Store) Run(ctx context.Context, script *Script, keys []string, args ...any) (*Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	r := &Reply{At: s.opts.Now(), Clock: &Clock{}}
	list, err := script.script.Run(ctx, s.client, keys, args...).Slice()
	if err != nil {
		return nil, fmt.Errorf("redis %s: %w", script.name, err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("redis %s: %w", script.name, ErrReply)
	}
	r.rest = list
	r.Now = int64(r.Uint(0))
	r.rest = list[1:]
	r.Clock.observe(s.opts.Now(), r.Now)
	s.clock.observe(s.opts.Now(), r.Now)
	return r, nil
}

// Text returns value i after the time, or "" if it is no string.
func (r *Reply) Text(i int) string {
	if i >= len(r.rest) {
		return ""
	}
	text, _ := r.rest[i].(string)
	return text
}

// Uint returns value i after the time, or 0 if it is no number.
func (r *Reply) Uint(i int) uint64 {
	n, err := strconv.ParseUint(r.Text(i), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// List returns the list that value i is.
func (r *Reply) List(i int) []string {
	if i >= len(r.rest) {
		return nil
	}
	values, _ := r.rest[i].([]any)
	list := make([]string, len(values))
	for j, v := range values {
		list[j], _ = v.(string)
	}
	return list
}
