package simulation

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
)

// Measures of the chart, in pixels.
const (
	chartWidth  = 960
	left, right = 64, 24
	top         = 132 // title and names of the phases
	panelHeight = 110
	panelGap    = 48
	bottom      = 56
)

// The scale of all panels; what is above goes out of the picture, with its number.
const (
	scaleTop  = 300 // a minute
	scaleStep = 100
)

// panelColors are told apart by who does not see red or green, too (Okabe, Ito).
func panelColor(i int) string {
	return []string{"#d55e00", "#e69f00", "#56b4e9", "#009e73"}[i%4]
}

// Chart is docs/simulation.svg: a panel for each report, all to one scale.
func Chart(scene *Scene, reports []*Report) []byte {
	c := chart{scene: scene}
	height := top + len(reports)*(panelHeight+panelGap) - panelGap + bottom
	fmt.Fprintf(&c.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" `+
		`aria-label="Origin requests per minute over a day" font-family="system-ui, -apple-system, 'Segoe UI', Roboto, `+
		`'Helvetica Neue', Arial, sans-serif" font-size="12" fill="#24292f">`+"\n", chartWidth, height, chartWidth, height)
	fmt.Fprintf(&c.b, `<rect width="%d" height="%d" rx="8" fill="#ffffff"/>`+"\n", chartWidth, height)
	c.text(left, 36, `font-size="20" font-weight="600"`, "Requests at the origin, per minute")
	c.text(left, 58, `fill="#57606a"`, fmt.Sprintf("The same day of %s client requests, four ways to run weir. "+
		"All to one scale.", thousands(reports[0].Requests)))
	c.phases(top-28, height-bottom)
	for i, r := range reports {
		c.panel(top+i*(panelHeight+panelGap), r, panelColor(i))
	}
	c.hours(height - bottom)
	c.b.WriteString("</svg>\n")
	return c.b.Bytes()
}

type chart struct {
	b     bytes.Buffer
	scene *Scene
}

// x is where a minute of the day is.
func (c *chart) x(minute float64) float64 {
	return left + (chartWidth-left-right)*minute/c.scene.Length.Minutes()
}

// y is how high so many requests are.
func y(n float64) float64 { return panelHeight * min(n, scaleTop) / scaleTop }

func (c *chart) text(x, y float64, attributes, s string) {
	var escaped strings.Builder
	_ = xml.EscapeText(&escaped, []byte(s)) // into memory
	fmt.Fprintf(&c.b, `<text x="%s" y="%s" %s>%s</text>`+"\n", number(x), number(y), attributes, escaped.String())
}

// phases shades the troubles of the day over all panels.
func (c *chart) phases(from, to int) {
	for _, p := range c.scene.Phases {
		x, x2 := c.x(p.From.Minutes()), c.x(p.To.Minutes())
		fmt.Fprintf(&c.b, `<rect x="%s" y="%d" width="%s" height="%d" fill="#eaeef2"/>`+"\n",
			number(x), from-8, number(max(x2-x, 3)), to-from+8)
		c.text((x+x2)/2, float64(from-14), `text-anchor="middle" fill="#57606a" font-size="11"`, p.Name)
	}
}

func (c *chart) panel(at int, r *Report, color string) {
	base := float64(at + panelHeight)
	for n := 0; n <= scaleTop; n += scaleStep {
		line := base - y(float64(n))
		fmt.Fprintf(&c.b, `<path d="M%d %sH%d" stroke="#d0d7de" stroke-width="0.7"/>`+"\n", left, number(line),
			chartWidth-right)
		c.text(left-8, line+4, `text-anchor="end" fill="#57606a" font-size="10"`, thousands(n))
	}
	var path strings.Builder
	fmt.Fprintf(&path, "M%s %s", number(c.x(0)), number(base))
	for minute, n := range r.PerMinute[:len(r.PerMinute)-1] {
		fmt.Fprintf(&path, "V%sH%s", number(base-y(float64(n))), number(c.x(float64(minute+1))))
	}
	fmt.Fprintf(&c.b, `<path d="%sV%sZ" fill="%s" fill-opacity="0.3" stroke="%s" stroke-width="0.8" `+
		`stroke-linejoin="round"/>`+"\n", path.String(), number(base), color, color)
	if most, minute := r.worstMinute(); most > scaleTop {
		c.text(c.x(float64(minute))+14, float64(at+14), halo+`font-weight="600"`, "up to "+thousands(most))
	}
	c.text(left, float64(at-10), halo+fmt.Sprintf(`font-size="14" font-weight="600" fill="%s"`, color), r.Setup)
	summary := fmt.Sprintf("%s origin requests · at most %d at a time for one page · wait p99 %s · %s errors",
		thousands(r.Origin.Requests), r.Origin.MaxPerKey, seconds(r.P99), thousands(r.Errors))
	c.text(chartWidth-right, float64(at-10), halo+`text-anchor="end"`, summary)
}

// halo keeps what lies behind from the letters.
const halo = `stroke="#ffffff" stroke-width="4" stroke-linejoin="round" paint-order="stroke" `

// hours is the scale below the last panel.
func (c *chart) hours(at int) {
	for hour := 0.0; hour <= c.scene.Length.Hours(); hour += 3 {
		x := c.x(60 * hour)
		fmt.Fprintf(&c.b, `<path d="M%s %dv5" stroke="#8c959f"/>`+"\n", number(x), at)
		c.text(x, float64(at+20), `text-anchor="middle" fill="#57606a"`, fmt.Sprintf("%02.0f:00", hour))
	}
	c.text(left, float64(at+42), `fill="#57606a" font-size="11"`, "Played by the real ext_proc service under "+
		"testing/synctest; see simulation.md.")
}

// number writes a coordinate with one digit after the point at most.
func number(v float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
}
