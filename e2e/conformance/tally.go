package conformance

import (
	"fmt"
	"io"
	"strings"
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

// WriteSideBySide prints what several subjects passed of each category: required, optional, and checks answered yes.
func WriteSideBySide(w io.Writer, s *Suite, measured []Measurement) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	columns := make([][]Row, len(measured))
	fmt.Fprint(t, "category\tof")
	for i, m := range measured {
		columns[i] = Tally(s, Judge(s, m.Results))
		fmt.Fprint(t, "\t", m.Subject)
	}
	fmt.Fprintln(t, "\t")
	kinds := []Kind{Required, Optimal, Check}
	for i, row := range Tally(s, Verdicts{}) {
		fmt.Fprintf(t, "%s\t%s", row.Category, perKind(kinds, func(k Kind) int { return row.Counts[k].Total() }))
		for _, rows := range columns {
			fmt.Fprintf(t, "\t%s", perKind(kinds, func(k Kind) int { return rows[i].Counts[k].Passed }))
		}
		fmt.Fprintln(t, "\t")
	}
	return t.Flush()
}

func perKind(kinds []Kind, count func(Kind) int) string {
	var b strings.Builder
	for _, k := range kinds {
		fmt.Fprintf(&b, "%4d", count(k))
	}
	return b.String()
}
