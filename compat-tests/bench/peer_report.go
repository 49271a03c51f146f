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
	"time"
)

// sample is one measurement.
type sample struct {
	Round  int     `json:"round"`
	Value  float64 `json:"value"`
	Others float64 `json:"other_busy_cores"`
}

// peerRow is one figure of all brokers.
type peerRow struct {
	Group   string              `json:"group"`
	Name    string              `json:"name"`
	Metric  string              `json:"metric"`
	Samples map[string][]sample `json:"samples"` // by broker
}

// figured is a sample and where it belongs.
type figured struct {
	broker, group, name, metric string
	sample                      sample
}

// peerReport is what a comparison was told and has found.
type peerReport struct {
	Date      string        `json:"date"`
	Machine   machine       `json:"machine"`
	Brokers   []string      `json:"brokers"`
	Scenarios []string      `json:"scenarios"`
	Rounds    int           `json:"rounds"`
	Seconds   float64       `json:"seconds"`       // of a measurement
	Starts    int           `json:"starts"`        // of which the best counts
	Rest      time.Duration `json:"rest_ns"`       // of idle brokers, before and while they are watched
	Fill      int64         `json:"backlog_bytes"` // that are read hot and cold; a start after kill -9 finds twice as many
	Done      []step        `json:"done"`
	Failed    []failure     `json:"failed,omitempty"`
	Rows      []*peerRow    `json:"rows"`

	file string // its name, where that matters
}

func readPeerReport(file string) (r peerReport, err error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, fmt.Errorf("%s: %w", file, err)
	}
	return r, r.check()
}

// take adds what a step has found.
func (r *peerReport) take(s step, found []figured) {
	r.Done = append(r.Done, s)
	for _, f := range found {
		f.sample.Round = s.Round
		row := r.row(f.group, f.name, f.metric)
		if row == nil {
			row = &peerRow{Group: f.group, Name: f.name, Metric: f.metric, Samples: make(map[string][]sample)}
			r.Rows = append(r.Rows, row)
		}
		row.Samples[f.broker] = append(row.Samples[f.broker], f.sample)
	}
}

func (r *peerReport) row(group, name, metric string) *peerRow {
	for _, row := range r.Rows {
		if row.Group == group && row.Name == name && row.Metric == metric {
			return row
		}
	}
	return nil
}

// groups are the kinds of rows in the order of the table.
func groups() []string {
	return []string{"throughput", "client", "small", "e2e", "read", "partitions", "start", "idle", "catchup"}
}

// sorted are the rows by group, otherwise in the order in which they came.
func (r *peerReport) sorted() []*peerRow {
	rows := slices.Clone(r.Rows)
	slices.SortStableFunc(rows, func(a, b *peerRow) int {
		return slices.Index(groups(), a.Group) - slices.Index(groups(), b.Group)
	})
	return rows
}

// values are a broker's samples that other work left alone, or all if there are
// none; quiet tells which.
func (r *peerRow) values(broker string) (all []float64, quiet bool) {
	for _, s := range r.Samples[broker] {
		if s.Others <= quietBelow {
			all = append(all, s.Value)
		}
	}
	if quiet = len(all) > 0; !quiet {
		for _, s := range r.Samples[broker] {
			all = append(all, s.Value)
		}
	}
	slices.Sort(all)
	return all, quiet
}

// value is the figure of a broker: the median, of starts the best. have is false
// if it was not measured.
func (r *peerRow) value(broker string) (v float64, have bool) {
	all, _ := r.values(broker)
	if len(all) == 0 {
		return 0, false
	}
	if r.Metric == firstAckMetric {
		return all[0], true
	}
	return median(all), true
}

// median is that of sorted values.
func median(all []float64) float64 {
	n := len(all)
	if n%2 == 0 {
		return (all[n/2-1] + all[n/2]) / 2
	}
	return all[n/2]
}

// medianOf is that of figures which were just found.
func medianOf(found []figured, group, name, metric string) float64 {
	var all []float64
	for _, f := range found {
		if f.group == group && f.name == name && f.metric == metric {
			all = append(all, f.sample.Value)
		}
	}
	slices.Sort(all)
	return median(all)
}

// rename gives what was just found under one name another.
func (p *peerRun) rename(group, from, to string) {
	for i := range p.pending {
		if f := &p.pending[i]; f.group == group && f.name == from {
			f.name = to
		}
	}
}

// disturbed reports whether a broker has no sample that other work left alone.
func (r *peerRow) disturbed(broker string) bool {
	_, quiet := r.values(broker)
	return !quiet && len(r.Samples[broker]) > 0
}

// latency tells figures that mean nothing on a busy machine.
func (r *peerRow) latency() bool { return strings.HasPrefix(r.Metric, "p") }

// cell shows a broker's figure and the range of its samples.
func (r *peerRow) cell(broker string) string {
	v, have := r.value(broker)
	if !have {
		return "-"
	}
	all, quiet := r.values(broker)
	text := number(v)
	if low, high := all[0], all[len(all)-1]; low != high {
		text = fmt.Sprintf("%s (%s–%s)", number(v), number(low), number(high))
	}
	if !quiet {
		text += " disturbed"
	}
	return text
}

// ratio is that of a broker's figure to the first broker's; have is false if
// there is none.
func (r *peerReport) ratio(row *peerRow, broker string) (v float64, have bool) {
	first, ok := row.value(r.Brokers[0])
	v, have = row.value(broker)
	if !ok || !have || first == 0 {
		return 0, false
	}
	return v / first, true
}

// print writes one table: figures, ranges, ratios to the first broker, goals.
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
	met := make(map[verdict]int)
	for _, row := range r.sorted() {
		fmt.Fprintf(t, "%s\t%s\t%s", row.Group, row.Name, row.Metric)
		for i, b := range r.Brokers {
			fmt.Fprintf(t, "\t%s", row.cell(b))
			if i == 0 {
				continue
			}
			ratio, goal, v := r.judge(row, b)
			met[v]++
			fmt.Fprintf(t, "\t%s\t%s", ratio, strings.TrimSpace(goal+" "+string(v)))
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush() // Whoever reads it is gone.
	fmt.Fprintf(w, "\ngoals: %d met, %d MISSED, %d not measurable for other work\n", met[goalMet], met[goalMissed], met[goalUnknown])
	for _, f := range r.Failed {
		fmt.Fprintf(w, "failed: %s: %s\n", f.Step, f.Error)
	}
}

// write saves the report whole or not at all.
func (r *peerReport) write(file string) error {
	raw, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	part := file + ".part"
	if err := os.WriteFile(part, append(raw, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(part, file)
}

// plots draws what can be drawn of the figures.
func (r *peerReport) plots(dir string) (files []string, err error) {
	for _, p := range []struct {
		name  string
		image []byte
	}{{"latency.svg", r.latencyPlot()}, {"partitions.svg", r.partitionsPlot()}} {
		if p.image == nil {
			continue
		}
		file := filepath.Join(dir, p.name)
		if err := os.WriteFile(file, p.image, 0o644); err != nil {
			return files, err
		}
		files = append(files, file)
	}
	return files, nil
}
