package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/extproc/admin"
)

func newStatus(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Show what weir-extproc holds and does",
		Example: "  weirctl status\n  weirctl status -o json | jq .store",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := c.client()
			if err != nil {
				return err
			}
			var s admin.Status
			if err := a.get(cmd.Context(), "/v1/status", nil, &s); err != nil {
				return err
			}
			return c.print(s, func(w io.Writer) { printStatus(w, &s) })
		},
	}
}

func printStatus(w io.Writer, s *admin.Status) {
	fmt.Fprintf(w, "weir\t%s, %s since %s\n", s.Version, s.State, s.StartTime.Format(time.RFC3339))
	p := &s.Policies
	if p.Feed != nil {
		printFeed(w, p)
	} else {
		fmt.Fprintf(w, "policies\t%d, generation %d, from %s\n", p.Count, p.Generation, p.Directory)
	}
	for _, e := range p.Errors {
		fmt.Fprintf(w, "  fault\t%s\n", e.Error())
	}
	fmt.Fprintf(w, "requests\t%d streams, %d waiting\n", s.Streams, s.Waiting)
	fmt.Fprintf(w, "coalescing\t%d flights, %d waiters, %d keys not coalesced\n",
		s.Flights.Flights, s.Flights.Waiters, s.Flights.Marks)
	fmt.Fprintf(w, "store\t%d entries, %s of %s\n", s.Store.Entries, size(s.Store.Bytes), size(s.Store.LimitBytes))
	var evicted []string
	for _, reason := range slices.Sorted(maps.Keys(s.Store.Evictions)) {
		if n := s.Store.Evictions[reason]; n > 0 {
			evicted = append(evicted, fmt.Sprintf("%d %s", n, reason))
		}
	}
	if len(evicted) > 0 {
		fmt.Fprintf(w, "evicted\t%s\n", strings.Join(evicted, ", "))
	}
	switch {
	case s.Refills.Entrances > 0:
		fmt.Fprintf(w, "refills\t%d running, %d entrances\n", s.Refills.Running, s.Refills.Entrances)
	case p.Feed != nil:
		fmt.Fprintf(w, "refills\tnone possible (the controller names no entrance)\n")
	case s.Refills.Address == "":
		fmt.Fprintf(w, "refills\tnone possible (no --refill-address)\n")
	default:
		fmt.Fprintf(w, "refills\t%d running, through %s\n", s.Refills.Running, s.Refills.Address)
	}
	for _, o := range s.Origins {
		fmt.Fprintf(w, "  %s\t%s\n", o.Policy, originText(&o))
	}
	for i := range s.Warm {
		if j := &s.Warm[i]; !j.Ended() {
			fmt.Fprintf(w, "warm-up\t%s, %d of %d, %s\n", j.State, j.Loaded, j.Total, j.Source)
		}
	}
	fmt.Fprintf(w, "hot keys\t%d (weirctl top)\n", s.HotKeys)
	fmt.Fprintf(w, "invalidations\t%d\n", s.Invalidations.Position)
	printFleet(w, s.Fleet)
}

// printFeed says how a process under a controller stands.
func printFeed(w io.Writer, p *admin.PolicyStatus) {
	f := p.Feed
	fmt.Fprintf(w, "policies\t%d, generation %d, of controller %s\n", p.Count, p.Generation, f.Controller)
	switch {
	case f.Connected:
		fmt.Fprintf(w, "controller\tconnected to %s since %s, %d of its replicas hear of this one\n",
			f.Address, f.ConnectedAt.Format(time.RFC3339), f.Reporting)
	case f.Synced:
		fmt.Fprintf(w, "controller\tnot connected: the last policies stay (%s)\n", f.LastError)
	default:
		fmt.Fprintf(w, "controller\tno word of it yet: requests pass by (%s)\n", f.LastError)
	}
	fmt.Fprintf(w, "feed\t%d resources in force, %d refused\n", f.Resources, f.Rejected)
	for _, e := range f.Errors {
		fmt.Fprintf(w, "  refused\t%s: %s\n", e.Resource, e.Error)
	}
}

// originText says what originLimits and the ramp do for a policy.
func originText(o *admin.Origin) string {
	text := fmt.Sprintf("%d at the origin, %d queued, %d refused", o.Running, o.Queued, o.Refused)
	if o.RampPerSecond > 0 {
		text += fmt.Sprintf(", ramped to %.0f/s", o.RampPerSecond)
	}
	return text
}
