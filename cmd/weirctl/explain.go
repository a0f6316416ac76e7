package main

import (
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/extproc"
	"github.com/weirproxy/weir/extproc/admin"
)

// explainFlags are those of explain; the names are those of the query.
type explainFlags struct {
	method, policy, route string
	headers, answer       []string
	status                int
	files                 []string
	refill                bool
}

func newExplain(c *cli) *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:   "explain URL",
		Short: "Say what would become of a request, and why",
		Long: "Say what would become of a request: which policy applies, what the cache key is, what is\n" +
			"stored, what weir would do and what Cache-Status would say. With --status or\n" +
			"--response-header also whether that answer of the origin would be stored, and for how long.\n\n" +
			"Asks a running weir-extproc; with --policy-file it works offline, on files, as if nothing\n" +
			"were stored.",
		Example: "  weirctl explain https://shop.example/products?id=7\n" +
			"  weirctl explain https://shop.example/ -H 'Cookie: session=1' --route products\n" +
			"  weirctl explain https://shop.example/ --policy-file catalog.yaml \\\n" +
			"    --response-header 'Cache-Control: max-age=60'",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.explain(cmd, args[0], &f) },
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.method, "method", "X", "GET", "method of the request")
	fs.StringArrayVarP(&f.headers, "header", "H", nil, "`header` of the request, \"Name: value\"; may be given again")
	fs.StringVar(&f.policy, "policy", "", "policy that applies, `namespace/name`")
	fs.StringVar(&f.route, "route", "", "`name` of the request's route, as Envoy calls it")
	fs.IntVar(&f.status, "status", 0, "status of the origin's answer (200 if --response-header is given)")
	fs.StringArrayVar(&f.answer, "response-header", nil, "`header` of the origin's answer; may be given again")
	fs.StringSliceVar(&f.files, "policy-file", nil, "work offline on these policy `files`, or on one directory")
	fs.BoolVar(&f.refill, "refill", true, "offline: detached fetches are possible")
	return cmd
}

// query returns the flags as the admin API takes them.
func (f *explainFlags) query(target string) url.Values {
	q := url.Values{"url": {target}, "method": {f.method}, "header": f.headers, "response-header": f.answer}
	if f.policy != "" {
		q.Set("policy", f.policy)
	}
	if f.route != "" {
		q.Set("route", f.route)
	}
	if f.status != 0 {
		q.Set("status", strconv.Itoa(f.status))
	}
	return q
}

func (c *cli) explain(cmd *cobra.Command, target string, f *explainFlags) error {
	var x extproc.Explanation
	var err error
	if len(f.files) > 0 {
		x, err = explainOffline(target, f)
	} else {
		var a *client
		if a, err = c.client(); err == nil {
			err = a.get(cmd.Context(), "/v1/explain", f.query(target), &x)
		}
	}
	if err != nil {
		return err
	}
	return c.print(x, func(w io.Writer) { printExplanation(w, &x) })
}

func explainOffline(target string, f *explainFlags) (x extproc.Explanation, err error) {
	r, err := admin.ParseExplain(f.query(target))
	if err != nil {
		return x, err
	}
	set, faults, err := loadPolicies(f.files)
	if err != nil {
		return x, err
	}
	if len(faults) > 0 {
		return x, fmt.Errorf("%w (see weirctl validate)", faults[0])
	}
	binding, err := admin.FindPolicy(set, r.Policy, r.Route)
	if err != nil {
		return x, err
	}
	q := extproc.Question{Binding: binding, Request: r.Request(), Response: r.Response, Refill: f.refill}
	return extproc.Explain(&q, time.Now()), nil
}

func printExplanation(w io.Writer, x *extproc.Explanation) {
	fmt.Fprintf(w, "request\t%s %s\n", x.Method, x.URI)
	switch {
	case x.Policy == "":
		fmt.Fprintf(w, "policy\tnone\n")
	case x.Route == "":
		fmt.Fprintf(w, "policy\t%s (%s)\n", x.Policy, x.Mode)
	default:
		fmt.Fprintf(w, "policy\t%s (%s), on route %s\n", x.Policy, x.Mode, x.Route)
	}
	if len(x.Layers) > 0 {
		fmt.Fprintf(w, "merged of\t%s\n", strings.Join(x.Layers, ", "))
	}
	fmt.Fprintf(w, "decision\t%s: %s\n", x.Decision, meaning(x.Decision))
	for _, line := range []struct{ name, value string }{
		{"reason", x.Reason}, {"outcome", x.Outcome}, {"Cache-Status", x.CacheStatus},
	} {
		if line.value != "" {
			fmt.Fprintf(w, "%s\t%s\n", line.name, line.value)
		}
	}
	if k := x.Key; k != nil {
		fmt.Fprintf(w, "key\t%s%s%s\n", k.Resource, list(", headers ", k.Headers), list(", cookies ", k.Cookies))
		fmt.Fprintf(w, "\tscope %s, hash %s\n", k.Scope, k.Hash)
	}
	if e := x.Stored; e != nil {
		fmt.Fprintf(w, "stored\t%d, %d bytes, age %s of %s%s%s\n", e.Status, e.BodyBytes, seconds(e.Age),
			seconds(e.Lifetime), windows(e.WhileRevalidate, e.IfError), list("; in ", e.Places))
	} else if x.Key != nil {
		fmt.Fprintf(w, "stored\tnothing\n")
	}
	if a := x.Answer; a != nil {
		fmt.Fprintf(w, "answer\t%s\n", describeAnswer(a))
	}
}

func describeAnswer(a *extproc.ExplainedAnswer) string {
	if !a.Stored {
		return "not stored: " + a.Reason
	}
	s := "stored for " + seconds(a.Lifetime) + windows(a.WhileRevalidate, a.IfError)
	if a.ValidateAlways {
		s = "stored, and validated before each use"
	}
	if !a.Shared {
		s += "; not shared with requests that wait for it"
	}
	return s + list("; varies by ", a.Vary) + list("; tags ", a.Tags)
}

func windows(whileRevalidate, ifError float64) string {
	s := ""
	if whileRevalidate > 0 {
		s += ", stale while revalidating for " + seconds(whileRevalidate)
	}
	if ifError > 0 {
		s += ", if the origin fails for " + seconds(ifError)
	}
	return s
}

func list(before string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return before + strings.Join(names, " ")
}

// meaning says what a decision means.
func meaning(d extproc.Decision) string {
	switch d {
	case extproc.DecisionPass:
		return "Envoy carries on without the cache"
	case extproc.DecisionWatch:
		return "goes to the origin; weir looks at the head of the answer"
	case extproc.DecisionServe:
		return "answered from the cache"
	case extproc.DecisionServeAndRefresh:
		return "answered from the cache, with one refresh behind it"
	case extproc.DecisionHoldThenStale:
		return "held for one refresh; the stale copy if that is slow or fails"
	case extproc.DecisionFetch:
		return "one fetch for all who ask meanwhile"
	case extproc.DecisionFetchAlone:
		return "a fetch for this request alone"
	case extproc.DecisionRefuse:
		return "answered 504: only-if-cached"
	}
	return "unknown to this weirctl"
}
