package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// value is one value as it was understood.
type value struct {
	text string // Canonical form, as DescribeConfigs shows it.
	num  int64  // Of boolean (0, 1), short, int and long.
	real float64
	list []string
}

// ValueError tells why a value was refused.
type ValueError struct {
	Name, Value, Reason string
}

// RelationError tells that two settings do not go together, in Kafka's words (GroupConfig), which tools look for.
type RelationError struct {
	Name, Value    string
	Relation       string // such as "greater than"
	Other, Another string // the other setting and its value
}

func (e *ValueError) setting() string    { return e.Name }
func (e *RelationError) setting() string { return e.Name }

// Error names both settings and their values.
func (e *RelationError) Error() string {
	return fmt.Sprintf("%s must be %s %s (%s), and is %s", e.Name, e.Relation, e.Other, e.Another, e.Value)
}

// Error names key, value and what was expected.
func (e *ValueError) Error() string {
	v := e.Value
	if len(v) > 200 {
		v = v[:200] + "…"
	}
	return fmt.Sprintf("invalid value %q for %s: %s", v, e.Name, e.Reason)
}

// parse understands raw as d's type and checks the bounds.
func (d *Def) parse(raw string) (value, error) {
	v, complaint := d.convert(raw)
	if complaint == "" && d.check != nil {
		complaint = d.check(v)
	}
	if complaint == "" {
		return v, nil
	}
	shown := raw
	if d.Sensitive() {
		shown = "[hidden]"
	}
	return v, &ValueError{Name: d.Name, Value: shown, Reason: complaint}
}

// convert understands raw as d's type, without bounds. White space around a
// value never counts.
func (d *Def) convert(raw string) (v value, complaint string) {
	s := strings.TrimSpace(raw)
	v.text = s
	switch d.Type {
	case boolT:
		return convertBool(s)
	case shortT:
		return convertWhole(s, 16, "a whole number of 16 bits")
	case intT:
		return convertWhole(s, 32, "a whole number of 32 bits")
	case longT:
		return convertWhole(s, 64, "a whole number of 64 bits")
	case doubleT:
		return convertReal(s)
	case listT:
		v.list = splitList(s)
		v.text = strings.Join(v.list, ",")
	case passwordT:
		v.text = raw
	}
	return v, ""
}

func convertBool(s string) (value, string) {
	switch {
	case strings.EqualFold(s, "true"):
		return value{text: "true", num: 1}, ""
	case strings.EqualFold(s, "false"):
		return value{text: "false"}, ""
	}
	return value{}, "expected true or false"
}

func convertWhole(s string, bits int, what string) (value, string) {
	n, err := strconv.ParseInt(s, 10, bits)
	if err != nil {
		return value{}, "expected " + what
	}
	return value{text: strconv.FormatInt(n, 10), num: n}, ""
}

func convertReal(s string) (value, string) {
	// Underscores and a bare "inf" are Go's, not Kafka's.
	if strings.ContainsRune(s, '_') || strings.EqualFold(strings.TrimLeft(s, "+-"), "inf") {
		return value{}, "expected a number"
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return value{}, "expected a number"
	}
	if math.IsNaN(f) {
		// Kafka lets it pass and then compares with it, which is never true.
		return value{}, "expected a number"
	}
	return value{text: formatReal(f), real: f}, ""
}

// formatReal writes a number as Kafka's tools expect it: 0.5, 1.0,
// 1.7976931348623157E308.
func formatReal(f float64) string {
	switch a := math.Abs(f); {
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case a == 0 || a >= 1e-3 && a < 1e7:
		s := strconv.FormatFloat(f, 'f', -1, 64)
		if !strings.ContainsRune(s, '.') {
			s += ".0"
		}
		return s
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'E', -1, 64), "E")
	if !strings.ContainsRune(mantissa, '.') {
		mantissa += ".0"
	}
	sign := ""
	if exponent[0] == '-' {
		sign = "-"
	}
	return mantissa + "E" + sign + strings.TrimLeft(exponent[1:], "0")
}

// splitList splits at commas; "" is the empty list, "," has two empty elements.
func splitList(s string) []string {
	s = strings.TrimSpace(s)
	if s == "" {
		return nil
	}
	parts := strings.Split(s, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

func formatWhole(n int64) string { return strconv.FormatInt(n, 10) }
