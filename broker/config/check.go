package config

import (
	"fmt"
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// check says what is wrong with a value that has the right type, "" if nothing.
type check func(v value) string

func atLeast(least int64) check {
	return func(v value) string {
		if v.num < least {
			return fmt.Sprintf("must be at least %d", least)
		}
		return ""
	}
}

func between(least, most int64) check {
	return func(v value) string {
		if v.num < least || v.num > most {
			return fmt.Sprintf("must be from %d to %d", least, most)
		}
		return ""
	}
}

func ratio(least, most float64) check {
	return func(v value) string {
		if math.IsNaN(v.real) || v.real < least || v.real > most {
			return fmt.Sprintf("must be from %v to %v", least, most)
		}
		return ""
	}
}

func oneOf(words ...string) check {
	return func(v value) string {
		if !slices.Contains(words, v.text) {
			return "must be one of " + strings.Join(words, ", ")
		}
		return ""
	}
}

func foldOneOf(words ...string) check {
	return func(v value) string {
		if !slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, v.text) }) {
			return "must be one of " + strings.Join(words, ", ")
		}
		return ""
	}
}

func eachOneOf(words ...string) check {
	return func(v value) string {
		for _, e := range v.list {
			if !slices.Contains(words, e) {
				return "each element must be one of " + strings.Join(words, ", ")
			}
		}
		return ""
	}
}

// cleanupPolicy allows the empty list too: keep for ever.
func cleanupPolicy(v value) string { return eachOneOf("compact", "delete")(v) }

func gzipLevel(v value) string {
	if v.num != -1 && (v.num < 1 || v.num > 9) {
		return "must be -1 or from 1 to 9"
	}
	return ""
}

func notZero(v value) string {
	if v.num == 0 {
		return "must be at least 1, or below zero for no limit"
	}
	return ""
}

func nonEmpty(v value) string {
	if v.text == "" {
		return "must not be empty"
	}
	return ""
}

func directories(v value) string {
	if slices.Contains(v.list, "") {
		return "a directory's name must not be empty"
	}
	return ""
}

func noEmptyElement(v value) string {
	if slices.Contains(v.list, "") {
		return "an element must not be empty"
	}
	return ""
}

// throttledReplicas takes * or pairs of partition and broker; empty elements
// do no harm.
func throttledReplicas(v value) string {
	if len(v.list) == 1 && v.list[0] == "*" {
		return ""
	}
	for _, e := range v.list {
		partition, broker, ok := strings.Cut(e, ":")
		if e != "" && (!ok || !digits(partition) || !digits(broker)) {
			return "must be *, or partition:broker pairs such as 0:1,1:2"
		}
	}
	return ""
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// addressLimits takes host:count pairs.
func addressLimits(v value) string {
	_, err := parseAddressLimits(v.text)
	if err != nil {
		return err.Error()
	}
	return ""
}

func parseAddressLimits(s string) (map[string]int, error) {
	limits := map[string]int{}
	for _, e := range splitList(s) {
		if e == "" {
			continue
		}
		i := strings.LastIndexByte(e, ':')
		if i <= 0 {
			return nil, fmt.Errorf("%q must be host:count", e)
		}
		host := strings.Trim(e[:i], "[]")
		n, err := strconv.Atoi(strings.TrimSpace(e[i+1:]))
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q must end in a number of connections", e)
		}
		if net.ParseIP(host) == nil && strings.Trim(host, hostCharacters) != "" {
			return nil, fmt.Errorf("%q is no address", host)
		}
		limits[host] = n
	}
	return limits, nil
}

const hostCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._%:"

// durationPattern is an ISO 8601 period of days and below.
var durationPattern = regexp.MustCompile(`^(?i)P(\d+D)?(T(\d+H)?(\d+M)?(\d+([.,]\d{0,9})?S)?)?$`)

// offsetReset takes latest, earliest, by_duration:PT1H.
func offsetReset(v value) string {
	if v.text == "latest" || v.text == "earliest" {
		return ""
	}
	period, ok := strings.CutPrefix(v.text, "by_duration:")
	if ok && durationPattern.MatchString(period) && strings.ContainsAny(period, "0123456789") && !strings.HasSuffix(strings.ToUpper(period), "T") {
		return ""
	}
	return "must be latest, earliest, or by_duration: and a period such as PT1H"
}

// listenerList and protocolMap check the form alone; names, ports and
// protocols are checked together by resolveListeners.
func listenerList(v value) string {
	if _, err := parseListeners(v.text); err != nil {
		return err.Error()
	}
	return ""
}

func protocolMap(v value) string {
	if _, err := parseProtocolMap(v.text); err != nil {
		return err.Error()
	}
	return ""
}

// matchPatterns takes the client selectors of a metrics subscription.
func matchPatterns(v value) string {
	keys := []string{
		"client_instance_id", "client_id", "client_software_name", "client_software_version",
		"client_source_address", "client_source_port",
	}
	for _, e := range v.list {
		key, pattern, ok := strings.Cut(e, "=")
		if !ok || !slices.Contains(keys, strings.TrimSpace(key)) {
			return "must be pairs such as client_id=PATTERN, of " + strings.Join(keys, ", ")
		}
		if _, err := regexp.Compile(strings.TrimSpace(pattern)); err != nil {
			return fmt.Sprintf("%q is no regular expression", pattern)
		}
	}
	return ""
}
