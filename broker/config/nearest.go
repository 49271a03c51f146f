package config

import "strings"

// UnknownKeyError is a setting that no config has.
type UnknownKeyError struct {
	Key, Source string
	Nearest     string // "" when nothing is near.
	Hint        string // More than a name, "" mostly.
}

// Error names the key, where it stands, and what was probably meant.
func (e *UnknownKeyError) Error() string {
	s := "unknown config " + e.Key + " (" + e.Source + ")"
	switch {
	case e.Hint != "":
		return s + ": " + e.Hint
	case e.Nearest != "":
		return s + ": did you mean " + e.Nearest + "? (--lenient ignores unknown configs)"
	}
	return s + ": remove it, or start with --lenient to ignore unknown configs"
}

// ignored is the line for a lenient start.
func (e *UnknownKeyError) ignored() string {
	s := "unknown config " + e.Key + " (" + e.Source + ") is ignored"
	switch {
	case e.Hint != "":
		return s + ": " + e.Hint
	case e.Nearest != "":
		return s + ": did you mean " + e.Nearest + "?"
	}
	return s
}

// unknown describes a key of a broker's configuration that is none.
func unknown(key, source string) *UnknownKeyError {
	e := &UnknownKeyError{Key: key, Source: source}
	if d := TopicDef(key); d != nil && len(d.Synonyms) > 0 {
		e.Nearest = d.Synonyms[0]
		e.Hint = "that is a topic config; for all topics of the broker it is " + e.Nearest
		return e
	}
	e.Nearest = nearest(key, tables().broker.names())
	return e
}

// nearest returns the name with the fewest edits from key, "" if even that is far.
func nearest(key string, names []string) string {
	key = strings.ToLower(strings.TrimSpace(key))
	best, least := "", max(2, len(key)/4)+1
	for _, n := range names {
		if d := distance(key, n, least); d < least {
			best, least = n, d
		}
	}
	return best
}

// distance counts edits (insert, delete, replace, swap of neighbours) from a
// to b; it may stop at limit.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
