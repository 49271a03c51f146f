package group

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/coordinator"
)

// pattern is a regular expression that members are subscribed to.
type pattern struct {
	members int
	// topics match, in order; at is when that was found out, in milliseconds, and
	// version the metadata's then.
	topics      []string
	version, at int64
	matcher     *regexp.Regexp // nil until it is needed
	size        int            // of the matcher, as weigh counts it
	search      *search        // goes on in later turns; nil if it is over
}

// isResolved tells whether it is known which topics match.
func (p *pattern) isResolved() bool { return p.version >= 0 }

// has tells whether a topic is known to match.
func (p *pattern) has(topic string) bool {
	_, ok := slices.BinarySearch(p.topics, topic)
	return ok
}

// compile makes an expression that must match the whole name.
func compile(expression string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(expression); err != nil {
		return nil, err
	}
	return regexp.Compile(`\A(?:` + expression + `)\z`)
}

// checkPattern refuses what is no regular expression. "" stands for none.
func (m *Machine) checkPattern(id, expression string) error {
	if g, ok := m.groups[id].(*Consumer); ok && g.patterns[expression] != nil || expression == "" {
		return nil
	}
	if tooLong(expression) {
		return refuse(kerr.InvalidRegularExpression, "SubscribedTopicRegex of %d bytes is too long.", len(expression))
	}
	if tree, err := syntax.Parse(expression, syntax.Perl); err == nil && weigh(tree) > maxPattern {
		return refuse(kerr.InvalidRegularExpression, "SubscribedTopicRegex of %d bytes is too complex.", len(expression))
	}
	_, err := compile(expression)
	if err == nil {
		return nil
	}
	why := err.Error()
	if e := (*syntax.Error)(nil); errors.As(err, &e) {
		why = string(e.Code)
	}
	return refuse(kerr.InvalidRegularExpression, "SubscribedTopicRegex `%s` is not a valid regular expression: %s.", expression, why)
}

// patternOf is what is known of an expression, made if need be.
func (g *Consumer) patternOf(expression string) *pattern {
	p := g.patterns[expression]
	if p == nil {
		if g.patterns == nil {
			g.patterns = make(map[string]*pattern, 1)
		}
		p = &pattern{version: -1}
		g.patterns[expression] = p
	}
	return p
}

// dropPattern forgets an expression when nobody is subscribed to it any more.
func (g *Consumer) dropPattern(t *coordinator.Turn, expression string) {
	if p := g.patterns[expression]; p != nil && p.members <= 0 {
		delete(g.patterns, expression)
		t.Append(patternKey(g.id, expression), nil)
	}
}

// resolveSoon sees to it that an expression that a member has come up with gets
// resolved: between the requests, as it may take a while where there are many topics.
// It tells whether there is nothing left to do for it.
func (g *Consumer) resolveSoon(t *coordinator.Turn, expression string) bool {
	if p := g.patterns[expression]; p == nil || p.isResolved() {
		return true
	}
	t.Set(&g.resolver, t.Now())
	return false
}
