package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// sample is one measurement.
type sample struct {
	Value  float64 `json:"value"`
	Others float64 `json:"other_busy_cores"`
}

// peerRow is one figure of all brokers.
type peerRow struct {
	Group   string              `json:"group"`
	Name    string              `json:"name"`
	Metric  string              `json:"metric"`
	Samples map[string][]sample `json:"samples"` // by broker, one a round
}

// peerReport is what a comparison has found.
type peerReport struct {
	Date    string     `json:"date"`
	Machine machine    `json:"machine"`
	Brokers []string   `json:"brokers"`
	Rounds  int        `json:"rounds"`
	Seconds float64    `json:"seconds"`
	Rows    []*peerRow `json:"rows"`
}

func (r *peerReport) add(broker, group, name, metric string, s sample) {
	fmt.Printf("      %s: %s %s\n", name, number(s.Value), metric)
	row := r.row(group, name, metric)
	if row == nil {
		row = &peerRow{Group: group, Name: name, Metric: metric, Samples: make(map[string][]sample)}
		r.Rows = append(r.Rows, row)
	}
	row.Samples[broker] = append(row.Samples[broker], s)
}

func (r *peerReport) row(group, name, metric string) *peerRow {
	for _, row := range r.Rows {
		if row.Group == group && row.Name == name && row.Metric == metric {
			return row
		}
	}
	return nil
}

// median returns the median of a broker's samples; have is false if it has none.
func (r *peerRow) median(broker string) (v float64, have bool) {
	var all []float64
	for _, s := range r.Samples[broker] {
		all = append(all, s.Value)
	}
	if len(all) == 0 {
		return 0, false
	}
	slices.Sort(all)
	if n := len(all); n%2 == 0 {
		return (all[n/2-1] + all[n/2]) / 2, true
	}
	return all[len(all)/2], true
}

// cell shows a broker's median and the range of its samples.
func (r *peerRow) cell(broker string) string {
	v, have := r.median(broker)
	if !have {
		return "-"
	}
	low, high := v, v
	for _, s := range r.Samples[broker] {
		low, high = min(low, s.Value), max(high, s.Value)
	}
	if low == high {
		return number(v)
	}
	return fmt.Sprintf("%s (%s–%s)", number(v), number(low), number(high))
}

// disturbed reports whether a broker has no sample that other work left alone.
func (r *peerRow) disturbed(broker string) bool {
	for _, s := range r.Samples[broker] {
		if s.Others <= quietBelow {
			return false
		}
	}
	return len(r.Samples[broker]) > 0
}

// latency tells figures that mean nothing on a busy machine.
func (r *peerRow) latency() bool { return strings.HasPrefix(r.Metric, "p") }

// percentiles are the figures of latency.
func percentiles() []string { return []string{"p50 ms", "p90 ms", "p99 ms", "p99.9 ms"} }

// goal is what a ratio to unsynced Kafka, or the figure itself, shall be.
type goal struct {
	group, name, metric string // name "" is every row of the group
	bound               float64
	least               bool // else it is a most
}

// absolute tells goals that are no ratios.
func (g *goal) absolute() bool { return g.group == "start" || g.group == "idle" }

func (g *goal) String() string {
	text := "≤ " + number(g.bound)
	if g.least {
		text = "≥ " + number(g.bound)
	}
	if g.absolute() {
		text += " itself"
	}
	return text
}

func goals() []goal {
	return []goal{
		{"start", "", "s to first ack", 0.3, false},
		{"idle", "", "% of a core", 1, false},
		{"idle", "", "MB resident", 60, false},
		{"throughput", "1 partition none", "MB/s", 1.8, true},
		{"throughput", "1 partition none", "CPU s/GiB", 0.45, false},
		{"throughput", "16 partitions none", "MB/s", 1.5, true},
		{"throughput", "16 partitions none", "CPU s/GiB", 0.5, false},
		{"throughput", "1 partition lz4", "MB/s", 1.3, true},
		{"throughput", "1 partition lz4", "CPU s/GiB", 0.7, false},
		{"throughput", "16 partitions lz4", "MB/s", 1.3, true},
		{"throughput", "16 partitions lz4", "CPU s/GiB", 0.7, false},
		{"client", "", "MB/s", 1.1, true},
		{"client", "", "CPU s/GiB", 0.5, false},
		{"small", "1 connection", "requests/s", 1, true},
		{"small", "1 connection", "p99.9 ms", 0.25, false},
		{"small", "16 connections", "requests/s", 2, true},
		{"small", "16 connections", "CPU µs/request", 0.4, false},
		{"small", "64 connections", "requests/s", 2.5, true},
		{"small", "64 connections", "CPU µs/request", 0.35, false},
		{"small", "16 connections, 8 in flight", "requests/s", 4, true},
		{"small", "16 connections, 8 in flight", "CPU µs/request", 0.25, false},
		{"latency", "", "p50 ms", 1, false},
		{"latency", "", "p99 ms", 0.4, false},
		{"latency", "", "p99.9 ms", 0.2, false},
		{"read", "", "MB/s", 1, true},
		{"read", "", "CPU s/GiB", 1, false},
		{"partitions", "100", "MB/s", 2.5, true},
		{"partitions", "100", "CPU s/GiB", 0.4, false},
		{"partitions", "1000", "MB/s", 2.5, true},
		{"partitions", "1000", "CPU s/GiB", 0.4, false},
		{"partitions", "1000", "MB resident", 0.2, false},
	}
}

// verdict compares a value, and its ratio to Kafka's, with the row's goal.
func (r *peerRow) verdict(value, ratio float64) string {
	for _, g := range goals() {
		if g.group != r.Group || g.metric != r.Metric || g.name != "" && g.name != r.Name {
			continue
		}
		got := ratio
		if g.absolute() {
			got = value
		}
		if g.least && got >= g.bound || !g.least && got <= g.bound {
			return g.String() + " met"
		}
		return g.String() + " MISSED"
	}
	return ""
}

// print writes one table: medians, ranges, and ratios to the first broker.
func (r *peerReport) print(w io.Writer) {
	m := &r.Machine
	fmt.Fprintf(w, "\n%s, %d cores, %.0f GiB, Linux %s, %s, fdatasync %.2f ms; %s; %d rounds of %.0f s\n\n",
		m.CPU, m.Cores, float64(m.MemoryBytes)/(1<<30), m.Kernel, m.Filesystem, m.SyncMillis, m.Revision, r.Rounds, r.Seconds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "SCENARIO\tROW\tFIGURE")
	for i, b := range r.Brokers {
		fmt.Fprintf(t, "\t%s", strings.ToUpper(b))
		if i > 0 {
			fmt.Fprint(t, "\tRATIO\tGOAL")
		}
	}
	fmt.Fprintln(t)
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s\t%s\t%s", row.Group, row.Name, row.Metric)
		first, _ := row.median(r.Brokers[0])
		for i, b := range r.Brokers {
			fmt.Fprintf(t, "\t%s", row.cell(b))
			if i == 0 {
				continue
			}
			v, have := row.median(b)
			switch {
			case !have || first == 0:
				fmt.Fprint(t, "\t\t")
			case row.latency() && (row.disturbed(b) || row.disturbed(r.Brokers[0])):
				fmt.Fprint(t, "\tnot measurable: other work\t")
			case b == "mainstem" && r.Brokers[0] == "kafka":
				fmt.Fprintf(t, "\t%s\t%s", number(v/first), row.verdict(v, v/first))
			default:
				fmt.Fprintf(t, "\t%s\t", number(v/first))
			}
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush() // Whoever reads it is gone.
}

// save writes the figures of this day, and the plots.
func (r *peerReport) save(dir string) (files []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, err
	}
	write := func(name string, content []byte) {
		if content == nil || err != nil {
			return
		}
		file := filepath.Join(dir, name)
		err = os.WriteFile(file, content, 0o644)
		files = append(files, file)
	}
	write(r.Date[:len("2006-01-02")]+"-peer.json", append(raw, '\n'))
	write("latency.svg", r.latencyPlot())
	write("partitions.svg", r.partitionsPlot())
	return files, err
}
