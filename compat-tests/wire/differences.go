package wire

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

//go:embed differences.tsv
var accepted string

// Accepted is a difference that stays, and why.
type Accepted struct {
	API, Note, Path *regexp.Regexp
	Reason          string
	Used            int
}

// AcceptedDifferences reads differences.tsv: api, note and path as regular
// expressions, then the reason.
func AcceptedDifferences() ([]*Accepted, error) {
	var out []*Accepted
	for n, line := range strings.Split(accepted, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 4 || f[3] == "" {
			return nil, fmt.Errorf("differences.tsv:%d: want api, note, path, reason", n+1)
		}
		a := &Accepted{Reason: f[3]}
		for i, dst := range []**regexp.Regexp{&a.API, &a.Note, &a.Path} {
			re, err := regexp.Compile("^(?:" + f[i] + ")$")
			if err != nil {
				return nil, fmt.Errorf("differences.tsv:%d: %w", n+1, err)
			}
			*dst = re
		}
		out = append(out, a)
	}
	return out, nil
}

// Unexplained drops the differences that are listed with a reason.
func Unexplained(found []Difference, list []*Accepted) (rest []Difference) {
next:
	for _, d := range found {
		for _, a := range list {
			if a.API.MatchString(d.Exchange.API) && a.Note.MatchString(d.Exchange.Note) && a.Path.MatchString(d.Path) {
				a.Used++
				continue next
			}
		}
		rest = append(rest, d)
	}
	return rest
}
