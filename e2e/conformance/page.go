package conformance

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// Page is what docs/conformance.md is made of.
type Page struct {
	Suite      *Suite
	Baseline   *Baseline
	Measured   *Measured
	Exceptions []Exception
}

// column is one cache in the tables.
type column struct {
	title, version, by string
	ours               bool
	verdicts           Verdicts
	rows               []Row // the last is the total
}

// heading is the title and the number in front of a packager's additions: "nginx 1.22.1" of 1.22.1-9+deb12u11.
func (c column) heading() string {
	if c.ours {
		return c.title
	}
	number := strings.FieldsFunc(c.version, func(r rune) bool { return r == '-' || r == '+' })
	if len(number) == 0 || len(number[0]) < 3 { // a date is kept whole
		return c.title + " " + c.version
	}
	return c.title + " " + number[0]
}

func (c column) total() map[Kind]Count { return c.rows[len(c.rows)-1].Counts }

// The page's running text.
var (
	//go:embed page/intro.md
	pageIntro string
	//go:embed page/envoy.md
	pageEnvoy string
	//go:embed page/newer.md
	pageNewer string
	//go:embed page/own.md
	pageOwn string
)

// Markdown writes the page.
func (p *Page) Markdown() []byte {
	var w bytes.Buffer
	columns := p.columns()
	w.WriteString(pageIntro)
	writeTotals(&w, p.Suite.Edition, columns)
	writeCategories(&w, "Required tests by category", columns, Required)
	writeCategories(&w, "Optional tests by category", columns, Optimal)
	p.writeEnvoyItself(&w)
	p.writeExceptions(&w, columns)
	p.writeNewer(&w)
	w.WriteString(pageOwn)
	return w.Bytes()
}

// columns are weir, the peers that were measured, and the caches the package has results of.
func (p *Page) columns() []column {
	const here, authors = "here", "by the suite's authors, 2021"
	columns := []column{{
		title: "Envoy + weir", version: "Envoy " + p.Baseline.EnvoyVersion, by: here, ours: true,
		verdicts: fill(p.Suite, p.Baseline.NotPassed),
	}}
	for _, m := range p.Measured.Peers {
		columns = append(columns, column{
			title: titleOf(m.Subject), version: m.Version, by: here, verdicts: m.Verdicts(p.Suite),
		})
	}
	for _, r := range p.Suite.Carried {
		columns = append(columns, column{
			title: r.Name, version: r.Version, by: authors, verdicts: Judge(p.Suite, r.Results),
		})
	}
	for i := range columns {
		columns[i].rows = Tally(p.Suite, columns[i].verdicts)
	}
	return columns
}

// titleOf is a subject's title, or its name when there is no such subject any more.
func titleOf(name string) string {
	if s, err := FindSubject(name); err == nil {
		return s.Title
	}
	return name
}

func writeTotals(w *bytes.Buffer, edition string, columns []column) {
	total := columns[0].total()
	fmt.Fprintf(w, "\n## Totals by %s\n\n", edition)
	fmt.Fprintf(w, "| cache | version | measured | required (%d) | optional (%d) | check: yes (%d) |\n",
		total[Required].Total(), total[Optimal].Total(), total[Check].Total())
	fmt.Fprintf(w, "|---|---|---|---:|---:|---:|\n")
	for _, c := range columns {
		title, counts := c.title, c.total()
		if c.ours {
			title = "**" + title + "**"
		}
		fmt.Fprintf(w, "| %s | %s | %s | %d | %d | %d |\n", title, c.version, c.by,
			counts[Required].Passed, counts[Optimal].Passed, counts[Check].Passed)
	}
}

// writeCategories shows how many tests of one kind passed; categories without such tests are left out.
func writeCategories(w *bytes.Buffer, title string, columns []column, kind Kind) {
	fmt.Fprintf(w, "\n## %s\n\nHow many there are, in brackets, and how many passed.\n\n", title)
	fmt.Fprintf(w, "| category |")
	for _, c := range columns {
		fmt.Fprintf(w, " %s |", c.heading())
	}
	fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat("---:|", len(columns)))
	for i, row := range columns[0].rows {
		if row.Counts[kind].Total() == 0 {
			continue
		}
		fmt.Fprintf(w, "| %s (%d) |", row.Category, row.Counts[kind].Total())
		for _, c := range columns {
			fmt.Fprintf(w, " %d |", c.rows[i].Counts[kind].Passed)
		}
		fmt.Fprintln(w)
	}
}

func (p *Page) writeEnvoyItself(w *bytes.Buffer) {
	fmt.Fprintf(w, "\n## What Envoy does by itself\n\n"+
		"Envoy without weir fails these required tests for reasons that no cache behind it can mend:\n\n")
	for _, id := range sortedKeys(p.Baseline.EnvoyItself) {
		fmt.Fprintf(w, "- `%s`: %s\n", id, p.Baseline.EnvoyItself[id])
	}
	w.WriteString(pageEnvoy)
}

func (p *Page) writeExceptions(w *bytes.Buffer, columns []column) {
	kinds := map[string]string{}
	for _, t := range p.Suite.All {
		kinds[t.ID] = string(t.Kind)
		if t.Kind == Optimal {
			kinds[t.ID] = "optional"
		}
	}
	fmt.Fprintf(w, "\n## Failed on purpose\n")
	for _, e := range p.Exceptions {
		fmt.Fprintf(w, "\n### %s\n\n%s\n\n", e.Title, strings.TrimSpace(e.Why))
		for _, id := range e.Tests {
			fmt.Fprintf(w, "- `%s` (%s), passed by %s\n", id, kinds[id], passedBy(columns, id))
		}
	}
	if ids := Unexplained(p.Suite, p.Baseline, p.Exceptions); len(ids) > 0 {
		fmt.Fprintf(w, "\n## Failed, not on purpose\n\n")
		for _, id := range ids {
			fmt.Fprintf(w, "- `%s` (%s)\n", id, kinds[id])
		}
	}
}

// passedBy names the other caches that pass a test.
func passedBy(columns []column, id string) string {
	var names []string
	for _, c := range columns {
		name := c.title + " " + c.version
		if !c.ours && c.verdicts[id] == Pass && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "none of the caches above"
	}
	return strings.Join(names, ", ")
}

func (p *Page) writeNewer(w *bytes.Buffer) {
	n := p.Measured.Newer
	if n == nil || len(n.Subjects) == 0 {
		return
	}
	subjects := slices.Clone(n.Subjects)
	slices.SortStableFunc(subjects, func(a, b Tallied) int { // the best first
		return cmp.Compare(b.Counts[Required].Passed, a.Counts[Required].Passed)
	})
	total := subjects[0].Counts
	fmt.Fprintf(w, "\n## The suite's newer edition\n\n%s.\n%s\n", n.Edition, pageNewer)
	fmt.Fprintf(w, "| cache | version | required (%d) | optional (%d) | check: yes (%d) |\n|---|---|---:|---:|---:|\n",
		total[Required].Total(), total[Optimal].Total(), total[Check].Total())
	for _, t := range subjects {
		version := t.Version
		if t.Subject == WeirSubject {
			version = "Envoy " + version
		}
		fmt.Fprintf(w, "| %s | %s | %d | %d | %d |\n", titleOf(t.Subject), version,
			t.Counts[Required].Passed, t.Counts[Optimal].Passed, t.Counts[Check].Passed)
	}
	for _, t := range subjects {
		if len(t.NotPassed) > 0 {
			fmt.Fprintf(w, "\nOf the required and the optional tests %s does not pass:\n\n", titleOf(t.Subject))
		}
		for _, id := range sortedKeys(t.NotPassed) {
			fmt.Fprintf(w, "- `%s`: %s\n", id, t.NotPassed[id])
		}
	}
}
