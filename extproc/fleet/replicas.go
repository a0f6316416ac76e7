package fleet

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"
)

// Replica is one process of the fleet, as Redis knows it.
type Replica struct {
	Name string
	// SilentFor is how long ago it said that it is alive.
	SilentFor time.Duration
	// Applied is the position up to which it had applied all stamps then; Current,
	// whether that was in the present history of Redis.
	Applied uint64
	Current bool
}

// Alive reports whether the replica is in touch: it says so several times within
// Options.Silence.
func (f *Fleet) Alive(r *Replica) bool { return r.SilentFor <= f.opts.Silence }

// Replicas lists the fleet by name, with those that fell silent in the last ten
// minutes without saying goodbye.
func (f *Fleet) Replicas(ctx context.Context) ([]Replica, error) {
	r, err := f.store.Run(ctx, f.replicas, f.stampKeys())
	if err != nil {
		return nil, err
	}
	list := parseReplicas(r.List(0))
	slices.SortFunc(list, func(a, b Replica) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// parseReplicas reads the answer of the script.
func parseReplicas(fields []string) []Replica {
	list := make([]Replica, 0, len(fields)/4)
	for ; len(fields) >= 4; fields = fields[4:] {
		applied, _ := strconv.ParseUint(fields[1], 10, 64)
		silent, _ := strconv.ParseInt(fields[2], 10, 64)
		list = append(list, Replica{
			Name: fields[0], Applied: applied, SilentFor: time.Duration(silent) * time.Microsecond, Current: fields[3] == "1",
		})
	}
	return list
}
