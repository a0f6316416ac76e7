package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/weirproxy/weir/extproc/admin"
)

// printFleet shows what a process has to do with the other replicas; nil: it is
// alone.
func printFleet(w io.Writer, f *admin.FleetStatus) {
	if f == nil {
		fmt.Fprintf(w, "fleet\talone (no --redis-url)\n")
		return
	}
	touch := "in touch"
	switch {
	case f.InTouch:
	case f.CaughtUp:
		touch = "Redis is away: on its own"
	default:
		touch = "catching up: nothing cached is served"
	}
	fmt.Fprintf(w, "fleet\treplica %s, %s, through %s\n", f.Replica, touch, f.Redis)
	if f.ReplicasError != "" {
		fmt.Fprintf(w, "  replicas\tunknown: %s\n", f.ReplicasError)
	} else {
		fmt.Fprintf(w, "  replicas\t%s\n", describeReplicas(f))
	}
	fmt.Fprintf(w, "  fetches\t%d leases held, %d of others waited for\n", f.Leases, f.Waiting)
	fmt.Fprintf(w, "  claims\t%s\n", counts(f.Claims))
	fmt.Fprintf(w, "  waits\t%s\n", counts(f.Waits))
	fmt.Fprintf(w, "  invalidations\tapplied up to %d, %d not told yet\n", f.Position, f.Pending)
	c := &f.Circuit
	fmt.Fprintf(w, "  redis\tcircuit %s (%d of %d nodes open), opened %d times, away %d times; errors: %s\n",
		c.State, c.Open, c.Nodes, c.Opened, f.Losses, counts(f.Errors))
	if n := counts(f.Refused); n != "none" {
		fmt.Fprintf(w, "  not believed\t%s\n", n)
	}
}

// describeReplicas counts the replicas and names those that are not well.
func describeReplicas(f *admin.FleetStatus) string {
	alive, unwell := 0, []string(nil)
	for i := range f.Replicas {
		r := &f.Replicas[i]
		switch {
		case !r.Alive:
			unwell = append(unwell, fmt.Sprintf("%s silent for %s", r.Name, seconds(r.SilentSeconds)))
			continue
		case !r.Current || r.Position < f.Position:
			unwell = append(unwell, r.Name+" behind")
		}
		alive++
	}
	s := fmt.Sprintf("%d alive", alive)
	if len(unwell) > 0 {
		s += "; " + strings.Join(unwell, ", ")
	}
	return s
}

// counts shows those that are not zero, by name.
func counts(m map[string]uint64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if m[name] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", m[name], strings.ReplaceAll(name, "_", " ")))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
