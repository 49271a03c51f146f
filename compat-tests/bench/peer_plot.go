package main

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
)

// plot is a line chart.
type plot struct {
	title, below string
	x            []string // labels of the steps
	unit         string
	logarithmic  bool
	lines        []plotLine
}

type plotLine struct {
	name   string
	values []float64 // one a step; NaN where there is none
	dashed bool
	color  string
}

const (
	plotWidth, plotHeight    = 800, 420
	plotLeft, plotRight      = 70, 240
	plotTop, plotBottom      = 50, 70
	plotInnerX               = plotWidth - plotLeft - plotRight
	plotInnerY               = plotHeight - plotTop - plotBottom
	plotFont                 = `font-family="sans-serif" font-size="12"`
	plotColors               = "#c0392b #2471a3 #e59866 #7fb3d5"
	plotBackground, plotGrid = "#ffffff", "#dddddd"
)

// svg draws the chart.
func (p *plot) svg() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">`+"\n", plotWidth, plotHeight, plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="%s"/>`+"\n", plotBackground)
	fmt.Fprintf(&b, `<text x="%d" y="28" font-family="sans-serif" font-size="16">%s</text>`+"\n", plotLeft, html.EscapeString(p.title))
	fmt.Fprintf(&b, `<text x="%d" y="%d" %s fill="#666666">%s</text>`+"\n", plotLeft, plotHeight-14, plotFont, html.EscapeString(p.below))
	low, high := p.bounds()
	for _, v := range p.ticks(low, high) {
		y := p.y(v, low, high)
		fmt.Fprintf(&b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="%s"/>`+"\n", plotLeft, y, plotLeft+plotInnerX, y, plotGrid)
		fmt.Fprintf(&b, `<text x="%d" y="%.1f" %s text-anchor="end">%s</text>`+"\n", plotLeft-8, y+4, plotFont, strconv.FormatFloat(v, 'g', 4, 64))
	}
	fmt.Fprintf(&b, `<text x="16" y="%d" %s transform="rotate(-90 16 %d)" text-anchor="middle">%s</text>`+"\n", plotTop+plotInnerY/2, plotFont, plotTop+plotInnerY/2, html.EscapeString(p.unit))
	for i, label := range p.x {
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" %s text-anchor="middle">%s</text>`+"\n", p.at(i), plotTop+plotInnerY+20, plotFont, html.EscapeString(label))
	}
	for i := range p.lines {
		p.draw(&b, &p.lines[i], i, low, high)
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// draw draws a line and its entry in the legend.
func (p *plot) draw(b *strings.Builder, l *plotLine, index int, low, high float64) {
	dash := ""
	if l.dashed {
		dash = ` stroke-dasharray="6 4"`
	}
	var points []string
	for i, v := range l.values {
		if math.IsNaN(v) {
			continue
		}
		x, y := p.at(i), p.y(v, low, high)
		points = append(points, fmt.Sprintf("%.1f,%.1f", x, y))
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>`+"\n", x, y, l.color)
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"%s/>`+"\n", strings.Join(points, " "), l.color, dash)
	y := plotTop + 20*index
	fmt.Fprintf(b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-width="2"%s/>`+"\n", plotLeft+plotInnerX+16, y, plotLeft+plotInnerX+46, y, l.color, dash)
	fmt.Fprintf(b, `<text x="%d" y="%d" %s>%s</text>`+"\n", plotLeft+plotInnerX+52, y+4, plotFont, html.EscapeString(l.name))
}

func (p *plot) at(i int) float64 {
	return plotLeft + plotInnerX*(float64(i)+0.5)/float64(len(p.x))
}

func (p *plot) y(v, low, high float64) float64 {
	if p.logarithmic {
		v, low, high = math.Log10(v), math.Log10(low), math.Log10(high)
	}
	return plotTop + plotInnerY*(1-(v-low)/(high-low))
}

// bounds are round numbers around all values.
func (p *plot) bounds() (low, high float64) {
	low, high = math.Inf(1), 0
	for _, l := range p.lines {
		for _, v := range l.values {
			if !math.IsNaN(v) && v > 0 {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	if high == 0 {
		return 0.1, 1
	}
	if p.logarithmic {
		low, high = math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high)))
		return low, max(high, low*10)
	}
	step := math.Pow(10, math.Floor(math.Log10(high)))
	return 0, math.Ceil(high/step*2) / 2 * step
}

func (p *plot) ticks(low, high float64) (all []float64) {
	if p.logarithmic {
		for v := low; v <= high*1.001; v *= 10 {
			all = append(all, v)
		}
		return all
	}
	for i := range 6 {
		all = append(all, high*float64(i)/5)
	}
	return all
}

// latencyPlot shows percentiles at each rate; nil if none were measured.
func (r *peerReport) latencyPlot() []byte {
	metrics := percentiles()
	p := plot{title: "From producer to consumer", unit: "milliseconds", logarithmic: true, below: r.caption()}
	for _, m := range metrics {
		p.x = append(p.x, strings.TrimSuffix(m, " ms"))
	}
	var names []string
	for _, row := range r.Rows {
		if row.Group == "e2e" && row.Metric == metrics[0] {
			names = append(names, row.Name)
		}
	}
	for i, broker := range r.Brokers {
		for k, name := range names {
			l := plotLine{name: broker + ", " + name, dashed: k > 0, color: plotColor(i)}
			for _, m := range metrics {
				l.values = append(l.values, r.valueOf("e2e", name, m, broker))
			}
			p.lines = append(p.lines, l)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return p.svg()
}

// partitionsPlot shows throughput against partitions; nil if none was measured.
func (r *peerReport) partitionsPlot() []byte {
	p := plot{title: "Full rate, batches of 4 KiB over all partitions", unit: "MB/s", below: r.caption()}
	var counts []int
	for _, row := range r.Rows {
		if n, err := strconv.Atoi(row.Name); err == nil && row.Group == "partitions" && row.Metric == "MB/s" {
			counts = append(counts, n)
		}
	}
	slices.Sort(counts)
	for _, n := range counts {
		p.x = append(p.x, strconv.Itoa(n))
	}
	if len(p.x) == 0 {
		return nil
	}
	for i, broker := range r.Brokers {
		l := plotLine{name: broker, color: plotColor(i)}
		for _, n := range p.x {
			l.values = append(l.values, r.valueOf("partitions", n, "MB/s", broker))
		}
		p.lines = append(p.lines, l)
	}
	return p.svg()
}

func (r *peerReport) valueOf(group, name, metric, broker string) float64 {
	if row := r.row(group, name, metric); row != nil {
		if v, have := row.value(broker); have {
			return v
		}
	}
	return math.NaN()
}

func (r *peerReport) caption() string {
	day, _, _ := strings.Cut(r.Date, "T")
	return fmt.Sprintf("%s, %d cores, %s; medians of %d rounds", day, r.Machine.Cores, r.Machine.Filesystem, r.Rounds)
}

func plotColor(i int) string {
	colors := strings.Fields(plotColors)
	return colors[i%len(colors)]
}
