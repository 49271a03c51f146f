package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"text/tabwriter"
)

// quietBelow is how many cores others may use while figures are taken that
// shall be compared with goals.
const quietBelow = 0.3

// figure is one measurement.
type figure struct {
	Part  string   `json:"part"`
	Name  string   `json:"name"`
	Value float64  `json:"value"`
	Unit  string   `json:"unit"`
	Goal  *float64 `json:"goal,omitempty"` // the value shall be below; nil: there is none
	Met   *bool    `json:"met,omitempty"`
	Note  string   `json:"note,omitempty"`
}

// report is what a run has found.
type report struct {
	Date    string             `json:"date"`
	Machine machine            `json:"machine"`
	Others  map[string]float64 `json:"other_busy_cores"` // a part, and what else the machine did meanwhile
	Figures []figure           `json:"figures"`
}

// add notes a figure without a goal.
func (r *report) add(part, name string, value float64, unit, note string) {
	f := figure{Part: part, Name: name, Value: value, Unit: unit, Note: note}
	r.Figures = append(r.Figures, f)
	fmt.Printf("   %s: %s %s %s\n", name, number(value), unit, note)
}

// goal notes a figure that shall be below its goal.
func (r *report) goal(part, name string, value, goal float64, unit, note string) {
	r.add(part, name, value, unit, note)
	f, met := &r.Figures[len(r.Figures)-1], value < goal
	f.Goal, f.Met = &goal, &met
}

func (r *report) noteBusy(part string, cores float64) {
	if r.Others == nil {
		r.Others = make(map[string]float64)
	}
	r.Others[part] = cores
}

// print writes one table of all figures.
func (r *report) print(w io.Writer) {
	m := &r.Machine
	fmt.Fprintf(w, "\n%s, %d cores, %.0f GiB, Linux %s, %s, fdatasync %.2f ms; %s\n\n",
		m.CPU, m.Cores, float64(m.MemoryBytes)/(1<<30), m.Kernel, m.Filesystem, m.SyncMillis, m.Revision)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PART\tFIGURE\tVALUE\tGOAL\t\tNOTE")
	for _, f := range r.Figures {
		goal, met := "", ""
		if f.Goal != nil {
			goal, met = "< "+number(*f.Goal)+" "+f.Unit, "MISSED"
			if *f.Met {
				met = "met"
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s %s\t%s\t%s\t%s\n", f.Part, f.Name, number(f.Value), f.Unit, goal, met, f.Note)
	}
	_ = t.Flush() // Whoever reads it is gone.
	for part, cores := range r.Others {
		if cores > quietBelow {
			fmt.Fprintf(w, "%s: other work used %.1f cores meanwhile; the figures are no measure of the broker alone\n", part, cores)
		}
	}
}

// save writes the report beside those of other days; parts that were measured
// earlier on the same day stay.
func (r *report) save(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	file := filepath.Join(dir, r.Date[:len("2006-01-02")]+".json")
	all := *r
	raw, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err == nil {
		var before report
		if err := json.Unmarshal(raw, &before); err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		all.merge(&before)
	}
	if raw, err = json.MarshalIndent(&all, "", "  "); err != nil {
		return "", err
	}
	return file, os.WriteFile(file, append(raw, '\n'), 0o644)
}

// merge takes over the parts of an earlier run that this one does not have.
func (r *report) merge(before *report) {
	others := make(map[string]float64)
	var figures []figure
	for _, p := range parts() {
		from := before
		if _, have := r.Others[p.name]; have {
			from = r
		}
		for _, f := range from.Figures {
			if f.Part == p.name {
				figures = append(figures, f)
			}
		}
		if cores, ok := from.Others[p.name]; ok {
			others[p.name] = cores
		}
	}
	r.Others, r.Figures = others, figures
}

// number writes a value with three digits that mean something.
func number(v float64) string {
	switch {
	case v == float64(int64(v)) || v >= 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case v >= 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}
