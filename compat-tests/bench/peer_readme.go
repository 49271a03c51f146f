package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Where a README holds the comparison.
const (
	readmeBegin = "<!-- comparison: made by compat-tests/bench/peer -readme -->\n"
	readmeEnd   = "<!-- /comparison -->\n"
)

// updateReadme writes the newest comparison into a README, and its plots anew.
func updateReadme(readme, results string) error {
	r, err := newestReport(results)
	if err != nil {
		return err
	}
	if r == nil {
		return fmt.Errorf("%s holds no report; compat-tests/bench/peer makes one", results)
	}
	if _, err := r.plots(results); err != nil {
		return err
	}
	text, err := os.ReadFile(readme)
	if err != nil {
		return err
	}
	before, _, after, err := cutReadme(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", readme, err)
	}
	return os.WriteFile(readme, []byte(before+r.markdown()+after), 0o644)
}

// cutReadme returns what lies before, between and behind the marks.
func cutReadme(text string) (before, between, after string, err error) {
	head, rest, ok := strings.Cut(text, readmeBegin)
	between, tail, closed := strings.Cut(rest, readmeEnd)
	if !ok || !closed {
		return "", "", "", errors.New("there is no place for the comparison")
	}
	return head + readmeBegin, between, readmeEnd + tail, nil
}

// newestReport reads the last comparison of a folder; nil if there is none.
func newestReport(dir string) (newest *peerReport, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*-peer*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		r, err := readPeerReport(file)
		if err != nil {
			return nil, err
		}
		if newest == nil || r.Date > newest.Date {
			r.file = filepath.Base(file)
			newest = &r
		}
	}
	return newest, nil
}

// markdown is what a README shows of a comparison: the figures that have goals,
// all of them, and the plots.
func (r *peerReport) markdown() string {
	const folder = "compat-tests/bench/results"
	var b strings.Builder
	day, _, _ := strings.Cut(r.Date, "T")
	m := &r.Machine
	fmt.Fprintf(&b, "Measured on %s at revision %s: %s, %d cores, %.0f GiB of memory, Linux %s, %s, an fdatasync takes %.2f ms. Clients and broker share\nthe cores. ",
		day, m.Revision, m.CPU, m.Cores, float64(m.MemoryBytes)/(1<<30), m.Kernel, m.Filesystem, m.SyncMillis)
	fmt.Fprintf(&b, "Medians of %d alternating rounds; of %d starts the best. Mainstem syncs before it acknowledges, Kafka has its defaults and does not\nsync. "+
		"All figures are in [%s](%s).\n\n", r.Rounds, r.Starts, r.file, path.Join(folder, r.file))
	fmt.Fprint(&b, "| scenario | figure | Kafka 4.3.1 | Mainstem | ratio | goal | |\n|---|---|---:|---:|---:|---:|---|\n")
	for _, row := range r.sorted() {
		if goalOf(row) == nil || len(row.Samples["mainstem"]) == 0 {
			continue
		}
		ratio, wanted, v := r.judge(row, "mainstem")
		name := row.Group + ": " + row.Name
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", name, row.Metric, r.plain(row, "kafka"), r.plain(row, "mainstem"), ratio, wanted, strings.ToLower(string(v)))
	}
	for _, p := range []struct {
		file, about string
		image       []byte
	}{
		{"latency.svg", "Latency from producer to consumer by percentile", r.latencyPlot()},
		{"partitions.svg", "Throughput against partitions", r.partitionsPlot()},
	} {
		if p.image != nil {
			fmt.Fprintf(&b, "\n![%s](%s)\n", p.about, path.Join(folder, p.file))
		}
	}
	return b.String()
}

// plain is a figure without its range.
func (r *peerReport) plain(row *peerRow, broker string) string {
	v, have := row.value(broker)
	if !have {
		return ""
	}
	return number(v)
}
