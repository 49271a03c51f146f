package group

import (
	"maps"
	"regexp/syntax"
	"slices"
	"time"

	"github.com/mainstem/mainstem/coordinator"
)

const (
	// maxPattern bounds the size of an expression, repetitions written out: more than
	// any list of names that is short enough.
	maxPattern = 40_000
	// searchSteps bounds the work of one turn on an expression: names times their
	// lengths times the expression's size. Other groups' requests come in between.
	searchSteps = 20_000_000
	// searchRest is how long they have for that.
	searchRest = time.Millisecond
)

// search is an expression on its way through the names of topics.
type search struct {
	version int64 // of the metadata that the names are from
	left    []string
	found   []string
}

// weigh is the size of an expression, at most a little above maxPattern: to match
// takes as many steps for each character of a name, in the worst case.
func weigh(re *syntax.Regexp) int {
	n := 1
	switch re.Op {
	case syntax.OpLiteral, syntax.OpCharClass:
		n += len(re.Rune)
	}
	for _, sub := range re.Sub {
		if n += weigh(sub); n > maxPattern {
			break
		}
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min+1, re.Max)
	}
	return min(n, maxPattern+1)
}

// resolveNew resolves what nobody has been subscribed to before, and goes on with
// what is being resolved. If topics match that is a new epoch, and members get them
// with their next heartbeats.
func (g *Consumer) resolveNew(t *coordinator.Turn) {
	changed := false
	for _, expression := range slices.Sorted(maps.Keys(g.patterns)) {
		p := g.patterns[expression]
		first := !p.isResolved()
		if !first && p.search == nil {
			continue
		}
		before := p.topics
		if g.resolve(t, expression) {
			changed = changed || first && len(p.topics) > 0 || !first && !slices.Equal(before, p.topics)
		}
	}
	if changed {
		g.hash = g.topicsHash()
		g.epoch++
		g.writeEpoch(t)
	}
}

// resolve finds out which topics match an expression, if the metadata is newer than
// what is known. RE2 takes time in proportion to the names, whatever the expression;
// where that is long the search goes on in later turns, and resolve returns false.
func (g *Consumer) resolve(t *coordinator.Turn, expression string) bool {
	p := g.patterns[expression]
	version := g.m.opts.Cluster.Version()
	if p.search == nil {
		if p.version == version {
			return true
		}
		if p.matcher == nil && !p.prepare(expression) {
			return true // It comes from a record of another version: it matches nothing.
		}
		p.search = &search{version: version, left: slices.Collect(g.m.opts.Cluster.Names())}
	}
	if !p.goOn(searchSteps) {
		t.Set(&g.resolver, t.Now().Add(searchRest))
		return false
	}
	found, first := p.search.found, !p.isResolved()
	p.version = p.search.version
	p.search = nil
	if p.version != version {
		g.outdated = true // Topics have come or gone meanwhile.
	}
	slices.Sort(found)
	if first || !slices.Equal(found, p.topics) {
		p.topics, p.at = g.m.shared(found), t.NowMillis()
		g.writePattern(t, expression, p)
	}
	return true
}

// prepare compiles the expression.
func (p *pattern) prepare(expression string) bool {
	matcher, err := compile(expression)
	if err != nil {
		return false
	}
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return false
	}
	p.matcher, p.size = matcher, weigh(tree)
	return true
}

// goOn looks at more names, and tells whether that were the last.
func (p *pattern) goOn(steps int) bool {
	s := p.search
	for len(s.left) > 0 && steps > 0 {
		name := s.left[0]
		s.left = s.left[1:]
		steps -= (len(name) + 1) * p.size
		if p.matcher.MatchString(name) {
			s.found = append(s.found, name)
		}
	}
	return len(s.left) == 0
}
