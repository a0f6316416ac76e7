package bench

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

//go:embed performance.md.tmpl
var pageTemplate string

// ReadReport reads what WriteJSON wrote.
func ReadReport(path string) (r Report, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return r, fmt.Errorf("read the results: %w", err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("read the results in %s: %w", path, err)
	}
	return r, nil
}

// Pages returns the files that show the report, by name: docs/performance.md and its charts.
func (r Report) Pages() (map[string][]byte, error) {
	t, err := template.New("performance.md").Funcs(template.FuncMap{"number": number, "dash": orDash}).Parse(pageTemplate)
	if err != nil {
		return nil, fmt.Errorf("parse the page's template: %w", err)
	}
	var page bytes.Buffer
	if err := t.Execute(&page, r); err != nil {
		return nil, fmt.Errorf("write the page: %w", err)
	}
	return map[string][]byte{
		"performance.md":           page.Bytes(),
		"performance-goals.svg":    r.goalsChart().svg(),
		"performance-hits.svg":     r.hitsChart().svg(),
		"performance-stampede.svg": r.stampedeChart().svg(),
	}, nil
}

// WritePages writes them into a directory.
func (r Report) WritePages(dir string) error {
	pages, err := r.Pages()
	if err != nil {
		return err
	}
	for name, content := range pages {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return fmt.Errorf("write the pages: %w", err)
		}
	}
	return nil
}

// row returns the row of a name; one that was not measured is zero.
func (r Report) row(name string) Row {
	for _, row := range r.Rows {
		if row.Name == name {
			return row
		}
	}
	return Row{}
}

// Goals are the rows that have a goal, in the design's order.
func (r Report) Goals() (rows []Row) {
	for _, g := range Goals() {
		if row := r.row(g.Name); row.Name != "" {
			rows = append(rows, row)
		}
	}
	return rows
}

// Others are the rows without a goal.
func (r Report) Others() (rows []Row) {
	for _, row := range r.Rows {
		if row.Goal == 0 {
			rows = append(rows, row)
		}
	}
	return rows
}

// Got is what is held against the goal, as text.
func (r Row) Got() string {
	if r.Baseline != 0 {
		return number(r.Ratio)
	}
	return number(r.Value) + " " + r.Unit
}

// Mark says whether the goal is met.
func (r Row) Mark() string {
	if r.OK {
		return "met"
	}
	return "**missed**"
}

// Together is the cost of Envoy and what it asks.
func (s Sample) Together() float64 { return s.Envoy + s.Server }

// Size is the size of the answer as a reader says it.
func (s Sample) Size() string {
	if s.Bytes >= 1<<20 {
		return fmt.Sprintf("%d MiB", s.Bytes>>20)
	}
	return fmt.Sprintf("%d KiB", s.Bytes>>10)
}

// goalsChart shows each goal's measured share of what it may be.
func (r Report) goalsChart() barChart {
	g := barGroup{}
	for _, row := range r.Goals() {
		got := row.Value
		if row.Baseline != 0 {
			got = row.Ratio
		}
		b := bar{label: strings.ReplaceAll(row.Name, "_", " "), parts: []float64{got / row.Goal}}
		b.number = fmt.Sprintf("%s of %s", row.Got(), number(row.Goal))
		if !row.OK {
			b.class = 2
		}
		g.bars = append(g.bars, b)
	}
	return barChart{
		title: "The goals of the design", subtitle: "What was measured, as a share of what it may be at most.",
		groups: []barGroup{g}, line: 1, lineName: "goal",
	}
}

// hitsChart stacks Envoy's and the cache's CPU for hits.
func (r Report) hitsChart() barChart {
	c := barChart{
		title:    "CPU per hit",
		subtitle: "Median of the rounds, in µs. Each size has a scale of its own.",
		parts:    []string{"Envoy", "cache behind it"},
	}
	for _, size := range []int{1 << 10, 64 << 10, 1 << 20, 8 << 20} {
		g := barGroup{name: Sample{Bytes: size}.Size(), scaled: true}
		for _, s := range r.Samples {
			if s.Case != "hit" || s.Bytes != size || s.Protocol != "h1" {
				continue
			}
			b := bar{label: s.What, parts: []float64{s.Envoy, s.Server}, number: number(s.Together()) + " µs"}
			// Measured twice: beside the floor, and later beside the other caches, which are what is compared here.
			g.bars = append(slices.DeleteFunc(g.bars, func(have bar) bool { return have.label == s.What }), b)
		}
		if len(g.bars) > 0 {
			c.groups = append(c.groups, g)
		}
	}
	return c
}

// stampedeChart shows when the last of 5,000 clients had its answer, and how often the origin was asked.
func (r Report) stampedeChart() barChart {
	c := barChart{
		title:    "5,000 clients ask for one cold key",
		subtitle: "From the first client's first byte to the last client's last, through one Envoy worker.",
	}
	var g barGroup
	for _, of := range []struct{ suffix, label string }{
		{"x1", "weir"}, {"x3", "weir, 3 processes"}, {"nginx", "nginx, proxy_cache_lock"}, {"varnish", "Varnish"},
	} {
		last := r.row("crowd_5000_" + of.suffix + "_last_byte_max_ms")
		if last.Name == "" {
			continue
		}
		origin := r.row("origin_requests_5000_" + of.suffix)
		g.bars = append(g.bars, bar{label: of.label, parts: []float64{last.Value}, number: fmt.Sprintf(
			"%s ms, origin asked %.0f×", number(last.Value), origin.Value)})
	}
	c.groups = []barGroup{g}
	return c
}
