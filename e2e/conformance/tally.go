package conformance

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Count says how tests of one kind fared.
type Count struct {
	Passed     int `json:"passed"`
	Failed     int `json:"failed"`     // an exchange that broke counts as failed too
	Dependency int `json:"dependency"` // failed by dependency
}

// Total is the number of tests counted.
func (c Count) Total() int { return c.Passed + c.Failed + c.Dependency }

// Row is the tally of one category, or of all.
type Row struct {
	Category string         `json:"category"`
	Counts   map[Kind]Count `json:"counts"`
}

// Tally counts verdicts by category, in the suite's order; the last row is the total.
func Tally(s *Suite, v Verdicts) []Row {
	total := Row{Category: "total", Counts: map[Kind]Count{}}
	var rows []Row
	for _, c := range s.Categories {
		row := Row{Category: c.ID, Counts: map[Kind]Count{}}
		for _, t := range c.Tests {
			row.Counts[t.Kind] = row.Counts[t.Kind].plus(v[t.ID])
			total.Counts[t.Kind] = total.Counts[t.Kind].plus(v[t.ID])
		}
		rows = append(rows, row)
	}
	return append(rows, total)
}

func (c Count) plus(v Verdict) Count {
	switch v {
	case Pass:
		c.Passed++
	case Dependency:
		c.Dependency++
	default:
		c.Failed++
	}
	return c
}

// WriteTally prints the rows as a table for a terminal.
func WriteTally(w io.Writer, rows []Row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\trequired\t\t\toptional\t\t\tcheck\t\t\t")
	fmt.Fprintln(t, "category\tpassed\tfailed\tdep.\tpassed\tfailed\tdep.\tyes\tno\tdep.\t")
	for _, r := range rows {
		fmt.Fprintf(t, "%s", r.Category)
		for _, k := range []Kind{Required, Optimal, Check} {
			c := r.Counts[k]
			fmt.Fprintf(t, "\t%d\t%d\t%d", c.Passed, c.Failed, c.Dependency)
		}
		fmt.Fprintln(t, "\t")
	}
	return t.Flush()
}
