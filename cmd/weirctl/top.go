package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/extproc/admin"
)

func newTop(c *cli) *cobra.Command {
	var policy string
	limit, once, interval := 20, false, 2*time.Second
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show the keys that are read most, live",
		Long: "top shows the keys that are read most at present: on a terminal live until Ctrl-C, else once.\n" +
			"The rates are estimates. Of cookies that count in a key only the names are shown.",
		Example: "  weirctl top\n  weirctl top --limit 100 -o json | jq -r '.keys[].uri'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := c.client()
			if err != nil {
				return err
			}
			query := url.Values{"limit": {strconv.Itoa(limit)}}
			if policy != "" {
				query.Set("policy", policy)
			}
			if once || c.output == "json" || !isTerminal(c.out) {
				return c.top(cmd.Context(), a, query)
			}
			return c.watchTop(cmd.Context(), a, query, interval)
		},
	}
	f := cmd.Flags()
	f.IntVar(&limit, "limit", limit, "how many keys, at most 1000")
	f.StringVar(&policy, "policy", "", "only keys under this `policy` (namespace/name)")
	f.BoolVar(&once, "once", false, "show them once, on a terminal too")
	f.DurationVar(&interval, "interval", interval, "how often a live view is drawn anew")
	return cmd
}

// top shows the hot keys once.
func (c *cli) top(ctx context.Context, a *client, query url.Values) error {
	var r admin.TopResult
	if err := a.get(ctx, "/v1/top", query, &r); err != nil {
		return err
	}
	return c.print(r, func(w io.Writer) { printTop(w, &r) })
}

// Control sequences of terminals (ECMA-48).
const (
	cursorHome = "\x1b[H"
	eraseBelow = "\x1b[J"
	eraseRight = "\x1b[K"
	eraseAll   = "\x1b[2J"
)

// watchTop shows the hot keys anew and anew until ctx ends, each time in one write
// over what was there.
func (c *cli) watchTop(ctx context.Context, a *client, query url.Values, every time.Duration) error {
	tick := time.NewTicker(max(every, 100*time.Millisecond))
	defer tick.Stop()
	fmt.Fprint(c.out, eraseAll)
	for {
		var r admin.TopResult
		if err := a.get(ctx, "/v1/top", query, &r); err != nil {
			if ctx.Err() != nil {
				return nil // Ctrl-C
			}
			return err
		}
		var screen bytes.Buffer
		w := tabwriter.NewWriter(&screen, 0, 0, 2, ' ', 0)
		fmt.Fprintf(w, "%s  %s\n\n", a.base.Host, time.Now().Format(time.TimeOnly))
		printTop(w, &r)
		if err := w.Flush(); err != nil {
			return err
		}
		text := strings.ReplaceAll(screen.String(), "\n", eraseRight+"\n")
		fmt.Fprint(c.out, cursorHome+text+eraseBelow)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func printTop(w io.Writer, r *admin.TopResult) {
	fmt.Fprintf(w, "READS/S\tPOLICY\tKEY\n")
	for i := range r.Keys {
		k := &r.Keys[i]
		fmt.Fprintf(w, "%s\t%s\t%s\n", rate(k.Rate), k.Policy, keyText(k))
	}
	if len(r.Keys) == 0 {
		fmt.Fprintf(w, "\t\tnothing was read lately\n")
	}
}

// keyText shows what a key stands for on one line.
func keyText(k *admin.HotKey) string {
	parts := []string{printable(k.URI)}
	for _, name := range slices.Sorted(maps.Keys(k.Headers)) {
		parts = append(parts, printable(name+": "+k.Headers[name]))
	}
	for _, name := range k.Cookies {
		parts = append(parts, "cookie: "+printable(name)+"=…")
	}
	return strings.Join(parts, "  ")
}

// printable shows what clients wrote without letting it steer a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '\uFFFD'
		}
		return r
	}, s)
}

// rate shows reads per second with what digits they deserve.
func rate(perSecond float64) string {
	switch {
	case perSecond >= 100:
		return strconv.FormatFloat(perSecond, 'f', 0, 64)
	case perSecond >= 1:
		return strconv.FormatFloat(perSecond, 'f', 1, 64)
	}
	return strconv.FormatFloat(perSecond, 'f', 3, 64)
}
