package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"
)

// Report is all that a run measured.
type Report struct {
	Date    time.Time `json:"date"`
	Machine string    `json:"machine"`
	Rows    []Row     `json:"rows"`
	Samples []Sample  `json:"samples"`
}

// Sample is what one request cost, CPU in µs: the median of the rounds.
type Sample struct {
	Case      string `json:"case"` // hit, pass, miss, stale, 304
	Bytes     int    `json:"bytes"`
	Protocol  string `json:"protocol"`  // of the client: h1, h2
	Transport string `json:"transport"` // from Envoy to the server: tcp, unix
	What      string `json:"what"`      // whom it was measured with
	// Envoy is 0 where there is none in front.
	Envoy  float64 `json:"envoyMicros"`
	Server float64 `json:"serverMicros"`
}

// WriteJSON writes the report to a file.
func (r Report) WriteJSON(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// WriteTable writes the report for a reader at a terminal.
func (r Report) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "row\tvalue\tbaseline\tratio\tgoal\t\twhat")
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s\t%s %s\t%s\t%s\t%s\t%s\t%s\n", row.Name, number(row.Value), row.Unit, orDash(row.Baseline),
			orDash(row.Ratio), orDash(row.Goal), row.mark(), row.What)
	}
	fmt.Fprintln(t, "\ncase\tbytes\tprotocol\ttransport\twith\tEnvoy µs\tserver µs\ttogether µs")
	for _, s := range r.Samples {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Case, s.Bytes, s.Protocol, s.Transport, s.What,
			orDash(s.Envoy), orDash(s.Server), number(s.Envoy+s.Server))
	}
	return t.Flush()
}

// mark says of a row with a goal whether it is met.
func (r Row) mark() string {
	switch {
	case r.Goal == 0:
		return ""
	case r.OK:
		return "met"
	default:
		return "MISSED"
	}
}

// number writes a value with three digits that count.
func number(v float64) string {
	switch {
	case v >= 100 || v <= -100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10 || v <= -10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

func orDash(v float64) string {
	if v == 0 {
		return "–"
	}
	return number(v)
}
