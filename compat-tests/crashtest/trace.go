package crashtest

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"time"
)

// event is one finished system call: when it began and ended.
type event struct {
	call, fd   string
	begin, end float64 // seconds of the epoch
	data       string  // bytes written, as far as traced
}

var (
	tracedCall = regexp.MustCompile(`^(\d+) +(\d+\.\d+) (\w+)\((.*)\) += (-?\d+).* <(\d+\.\d+)>$`)
	unfinished = regexp.MustCompile(`^(\d+) +(\d+\.\d+) (\w+)\((.*) <unfinished \.\.\.>$`)
	resumed    = regexp.MustCompile(`^(\d+) +(\d+\.\d+) <\.\.\. (\w+) resumed>(.*)\) += (-?\d+).* <(\d+\.\d+)>$`)
	hexString  = regexp.MustCompile(`"((?:\\x[0-9a-f]{2})*)"`)
)

// parseTrace reads the output of strace -f -ttt -T -xx. Calls that failed, or
// that strace has stubbed out, did not happen.
func parseTrace(raw string) (events []event) {
	begun := map[string][]string{} // thread -> its unfinished call
	for _, line := range strings.Split(raw, "\n") {
		if strings.Contains(line, "(INJECTED)") {
			continue
		}
		if m := unfinished.FindStringSubmatch(line); m != nil {
			begun[m[1]] = m
			continue
		}
		m := tracedCall.FindStringSubmatch(line)
		if r := resumed.FindStringSubmatch(line); r != nil {
			b := begun[r[1]]
			if b == nil || b[3] != r[3] {
				continue
			}
			m = []string{line, r[1], b[2], r[3], b[4] + r[4], r[5], r[6]}
		}
		if m == nil || strings.HasPrefix(m[5], "-") {
			continue
		}
		begin, err1 := strconv.ParseFloat(m[2], 64)
		took, err2 := strconv.ParseFloat(m[6], 64)
		if err1 != nil || err2 != nil {
			continue
		}
		fd, _, _ := strings.Cut(m[4], ",")
		events = append(events, event{m[3], fd, begin, begin + took, decodeStrings(m[4])})
	}
	sort.Slice(events, func(i, j int) bool { return events[i].begin < events[j].begin })
	return events
}

func decodeStrings(args string) string {
	var all strings.Builder
	for _, m := range hexString.FindAllStringSubmatch(args, -1) {
		b, err := hex.DecodeString(strings.ReplaceAll(m[1], `\x`, ""))
		if err == nil {
			all.Write(b)
		}
	}
	return all.String()
}

// judge finds for each acknowledged mark the write of its bytes and the first
// sync that began after it, and names the marks that were answered before.
func judge(raw string, acked map[string]time.Time) (violations []string) {
	events := parseTrace(raw)
	for mark, at := range acked {
		ack := float64(at.UnixNano()) / 1e9
		written, synced, file := -1.0, -1.0, ""
		for _, e := range events {
			switch {
			case written < 0 && strings.HasPrefix(e.call, "pwrite") && strings.Contains(e.data, mark):
				written, file = e.end, e.fd
			case written >= 0 && e.call == "fdatasync" && e.fd == file && e.begin >= written:
				synced = e.end
			}
			if synced >= 0 {
				break
			}
		}
		switch {
		case written < 0:
			violations = append(violations, mark+": acknowledged, and never written")
		case synced < 0 || synced > ack:
			violations = append(violations, fmt.Sprintf("%s: written at %.6f, acknowledged at %.6f, synced at %.6f", mark, written, ack, synced))
		}
	}
	sort.Strings(violations)
	return violations
}
