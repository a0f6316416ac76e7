package simulation

import (
	"bytes"
	_ "embed" // the template of the page
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"text/template"
	"time"
)

// Table is the reports side by side, for a terminal.
func Table(reports []*Report) string {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range rows(reports) {
		fmt.Fprintln(w, strings.Join(row, "\t")+"\t")
	}
	_ = w.Flush() // into memory
	return b.String()
}

func rows(reports []*Report) [][]string {
	all := [][]string{{"", "origin requests", "share", "most in a minute", "most at a time", "for one page",
		"wait p50", "p99", "max", "errors"}}
	for _, r := range reports {
		worst, _ := r.worstMinute()
		all = append(all, []string{
			r.Setup, thousands(r.Origin.Requests),
			fmt.Sprintf("%.1f %%", 100*float64(r.Origin.Requests)/float64(r.Requests)), thousands(worst),
			thousands(r.Origin.MaxConcurrent), thousands(r.Origin.MaxPerKey),
			seconds(r.P50), seconds(r.P99), seconds(r.Max), thousands(r.Errors),
		})
	}
	return all
}

// worstMinute returns the most requests in a minute, and which minute that was.
func (r *Report) worstMinute() (most, minute int) {
	for i, n := range r.PerMinute {
		if n > most {
			most, minute = n, i
		}
	}
	return most, minute
}

// seconds shows a wait to the millisecond.
func seconds(d time.Duration) string {
	if d < time.Second {
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

//go:embed page.md.tmpl
var pageTemplate string

// Page is docs/simulation.md.
func Page(scene *Scene, reports []*Report) ([]byte, error) {
	t, err := template.New("simulation.md").Parse(pageTemplate)
	if err != nil {
		return nil, fmt.Errorf("parse the page's template: %w", err)
	}
	var table, phases []string
	for i, row := range rows(reports) {
		table = append(table, "| "+strings.Join(row, " | ")+" |")
		if i == 0 {
			table = append(table, "| --- |"+strings.Repeat(" ---: |", len(row)-1))
		}
	}
	for _, p := range scene.Phases {
		phases = append(phases, fmt.Sprintf("%s to %s: %s", clock(p.From), clock(p.To), p.explained()))
	}
	var b bytes.Buffer
	err = t.Execute(&b, map[string]any{
		"Scene": scene, "Requests": thousands(reports[0].Requests), "Hours": scene.Length.Hours(),
		"MedianCost": medianCost, "Capacity": capacity, "RouteTimeout": routeTimeout, "Table": table, "Phases": phases,
	})
	if err != nil {
		return nil, fmt.Errorf("write the page: %w", err)
	}
	return b.Bytes(), nil
}

func clock(d time.Duration) string {
	return fmt.Sprintf("%02d:%02d", int(d.Hours()), int(d.Minutes())%60)
}

func (p *Phase) explained() string {
	switch {
	case p.Crowd > 0:
		return fmt.Sprintf("a crowd asks for one page, which costs %v, %v times a second", crowdCost, p.Crowd)
	case p.Trouble == Slow:
		return fmt.Sprintf("the origin takes %d times as long", slowdown)
	case p.Trouble == Failing:
		return "the origin answers 503"
	case p.Trouble == Frozen:
		return "the origin does not answer"
	}
	return p.Name
}
