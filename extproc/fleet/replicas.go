package fleet

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
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
	m, err := f.members(ctx)
	return m.replicas, err
}

// complete is how old a history must be for its list of replicas to have all who are
// in touch: a beat, and what that may take. Those who are not in touch are on it as
// soon as one who knew them is.
const complete = followBlock + DefaultClaim

// errIncomplete says that Redis lost its list of replicas a moment ago.
var errIncomplete = errors.New("the replicas have not all been heard of since Redis lost its list of them")

// members is the list of replicas in Redis, and the history it belongs to.
type members struct {
	replicas []Replica // by name
	history  string
	age      time.Duration // of the history
}

func (f *Fleet) members(ctx context.Context) (members, error) {
	r, err := f.store.Run(ctx, f.replicas, f.stampKeys())
	if err != nil {
		return members{}, err
	}
	list := parseReplicas(r.List(0))
	slices.SortFunc(list, func(a, b Replica) int { return cmp.Compare(a.Name, b.Name) })
	return members{list, r.Text(1), time.Duration(r.Uint(2)) * time.Microsecond}, nil
}

// maxOthers bounds the replicas that one remembers.
const maxOthers = 1000

// remember notes who else is in the fleet: names and when they were seen.
func (fo *follower) remember(others []string) {
	var b strings.Builder
	for i := 0; i+1 < min(len(others), 2*maxOthers); i += 2 {
		b.WriteString(others[i] + " " + others[i+1] + "\n")
	}
	text := b.String()
	fo.known.Store(&text)
}

// others are the replicas that this one knows of, for the list in Redis, should that
// be lost.
func (fo *follower) others() string {
	if text := fo.known.Load(); text != nil {
		return *text
	}
	return ""
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
