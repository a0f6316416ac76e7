package bench

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
)

// Measures of a chart, in pixels.
const (
	chartWidth = 860
	chartLeft  = 210 // labels
	chartRight = 150 // numbers
	chartTop   = 84
	barHeight  = 18
	barGap     = 10
	groupGap   = 26
)

// chartStyle colours the chart for light and dark pages; parts are told apart by who does not see red or green, too.
const chartStyle = `<style>
.bg{fill:#fff}.t{fill:#1f2328}.m{fill:#59636e}.l{stroke:#59636e}
.p0{fill:#0072b2}.p1{fill:#e69f00}.p2{fill:#d55e00}
@media (prefers-color-scheme:dark){.bg{fill:#0d1117}.t{fill:#f0f6fc}.m{fill:#9198a1}.l{stroke:#9198a1}
.p0{fill:#56b4e9}.p1{fill:#f0c04a}.p2{fill:#ff8c5a}}
</style>
`

// barChart is horizontal bars on one scale.
type barChart struct {
	title, subtitle string
	parts           []string // names of the parts of a bar, for the legend
	groups          []barGroup
	// line, if not 0, is where a line stands that bars should not cross, named lineName.
	line     float64
	lineName string
}

type barGroup struct {
	name string
	// scale of its own: the longest bar of the group takes the whole width.
	scaled bool
	bars   []bar
}

type bar struct {
	label  string
	parts  []float64
	number string
	class  int // of the first part
}

func (b bar) sum() (sum float64) {
	for _, p := range b.parts {
		sum += p
	}
	return sum
}

// svg draws the chart.
func (c barChart) svg() []byte {
	height := chartTop
	for _, g := range c.groups {
		height += groupGap + len(g.bars)*(barHeight+barGap)
	}
	height += 16
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" `+
		`aria-label="%s" font-family="system-ui, 'Segoe UI', Roboto, Arial, sans-serif" font-size="13">`+"\n%s",
		chartWidth, height, chartWidth, height, escaped(c.title), chartStyle)
	fmt.Fprintf(&b, `<rect class="bg" width="%d" height="%d" rx="6"/>`+"\n", chartWidth, height)
	text(&b, 20, 30, `class="t" font-size="18" font-weight="600"`, c.title)
	text(&b, 20, 50, `class="m" font-size="12"`, c.subtitle)
	for i, name := range c.parts {
		fmt.Fprintf(&b, `<rect class="p%d" x="%d" y="62" width="12" height="12" rx="2"/>`+"\n", i, chartLeft+i*130)
		text(&b, chartLeft+18+i*130, 73, `class="m" font-size="12"`, name)
	}
	y := chartTop
	for _, g := range c.groups {
		y = c.group(&b, g, y)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// group draws a group from y on, and returns where the next begins.
func (c barChart) group(b *bytes.Buffer, g barGroup, y int) int {
	text(b, 20, y+16, `class="t" font-weight="600"`, g.name)
	y += groupGap
	longest := c.line
	for _, other := range c.groups {
		for _, bar := range other.bars {
			if !g.scaled || other.name == g.name {
				longest = max(longest, bar.sum())
			}
		}
	}
	scale := float64(chartWidth-chartLeft-chartRight) / longest
	from := y
	for _, bar := range g.bars {
		text(b, chartLeft-10, y+13, `class="t" text-anchor="end"`, bar.label)
		x := float64(chartLeft)
		for i, p := range bar.parts {
			fmt.Fprintf(b, `<rect class="p%d" x="%.1f" y="%d" width="%.1f" height="%d"/>`+"\n",
				bar.class+i, x, y, max(p*scale, 1), barHeight)
			x += p * scale
		}
		text(b, int(x)+8, y+13, `class="m"`, bar.number)
		y += barHeight + barGap
	}
	if c.line > 0 {
		x := float64(chartLeft) + c.line*scale
		fmt.Fprintf(b, `<path class="l" d="M%.1f %dV%d" stroke-dasharray="4 3"/>`+"\n", x, from-4, y-barGap+4)
		text(b, int(x), from-8, `class="m" font-size="12" text-anchor="middle"`, c.lineName)
	}
	return y
}

func text(b *bytes.Buffer, x, y int, attributes, s string) {
	fmt.Fprintf(b, `<text x="%d" y="%d" %s>%s</text>`+"\n", x, y, attributes, escaped(s))
}

func escaped(s string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(s)) // into memory
	return out.String()
}
