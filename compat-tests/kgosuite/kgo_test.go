package kgosuite

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/compat-tests/harness"
)

const suite = "github.com/twmb/franz-go/pkg/kgo"

// exceptions are the tests that may skip themselves: by what they say, and why.
var exceptions = map[string]string{
	"broker does not support share groups": "share groups come later",
	"KGO_TEST_SCRAM":                       "needs a SASL listener",
	"KGO_TEST_OAUTH_SEEDS":                 "needs a SASL listener",
	"broker still takes produce v2":        "needs a broker that takes no Produce v3",
}

// result is how a test of the suite ended, and what it said.
type result struct {
	name, action string
	output       strings.Builder
}

// event is one line of `go test -json`.
type event struct{ Action, Test, Output string }

// collect reads the events of a run; a test that began and never ended has failed.
func collect(from io.Reader) (results []*result, err error) {
	byName := map[string]*result{}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Test == "" {
			continue
		}
		r := byName[e.Test]
		if r == nil {
			r = &result{name: e.Test, action: "did not end"}
			byName[e.Test], results = r, append(results, r)
		}
		switch e.Action {
		case "output":
			r.output.WriteString(e.Output)
		case "pass", "fail", "skip":
			r.action = e.Action
		}
	}
	return results, lines.Err()
}

// excused gives the reason for which a test may skip itself.
func excused(r *result) (why string, ok bool) {
	for said, why := range exceptions {
		if strings.Contains(r.output.String(), said) {
			return why, true
		}
	}
	return "", false
}

var noise = regexp.MustCompile(`(?m)^\s*(=== |--- ).*\n`)

// TestSuiteOfFranzGo runs where COMPAT_CLIENTS=all is set, as compat-tests/compat
// full does. KGO_TEST_RECORDS sets its load, COMPAT_KGO_RUN picks tests, and
// COMPAT_ADDRESS names a running broker to use instead of a new Mainstem.
func TestSuiteOfFranzGo(t *testing.T) {
	if os.Getenv("COMPAT_CLIENTS") != "all" {
		t.Skip("COMPAT_CLIENTS=all is not set: suites of other projects are run by `make compat`")
	}
	address := os.Getenv("COMPAT_ADDRESS")
	if address == "" {
		// Its tests of racks want one; the rest is a broker's default.
		address = harness.Start(t, "broker.rack=rack1").Address
	}
	args := []string{"test", "-count=1", "-timeout", "20m", "-json"}
	if only := os.Getenv("COMPAT_KGO_RUN"); only != "" {
		args = append(args, "-run", only)
	}
	cmd := exec.CommandContext(t.Context(), "go", append(args, suite)...)
	cmd.Env = append(os.Environ(), "KGO_SEEDS="+address, "KGO_TEST_RF=1", "KGO_LOG_LEVEL=none")
	if os.Getenv("KGO_TEST_RECORDS") == "" {
		cmd.Env = append(cmd.Env, "KGO_TEST_RECORDS=50000")
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	results, err := collect(out)
	ended := cmd.Wait() // The results tell what has failed.
	require.NoError(t, err)
	require.NotEmpty(t, results, "%v\n%s", ended, stderr.String())

	count := map[string]int{}
	reasons := map[string]int{}
	for _, r := range results {
		switch why, ok := excused(r); {
		case r.action == "pass":
		case r.action == "skip" && ok:
			reasons[why]++
		default:
			assert.Fail(t, fmt.Sprintf("%s: %s", r.name, r.action), tail(noise.ReplaceAllString(r.output.String(), ""), 1500))
			r.action = "fail"
		}
		count[r.action]++
	}
	fmt.Printf("kgo: %d passed, %d failed, %d skipped\n", count["pass"], count["fail"], count["skip"])
	for _, why := range sorted(reasons) {
		fmt.Printf("kgo: %d skipped: %s\n", reasons[why], why)
	}
	if os.Getenv("COMPAT_KGO_RUN") == "" {
		require.Greater(t, count["pass"], 500, "the suite must have run as a whole")
	}
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

func sorted(of map[string]int) (keys []string) {
	for k := range of {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// TestCollect: tests that end in no way have failed, as has one that skips itself
// for a reason that is not listed.
func TestCollect(t *testing.T) {
	results, err := collect(strings.NewReader(`{"Action":"run","Test":"A"}
{"Action":"output","Test":"A","Output":"broker does not support share groups (why)\n"}
{"Action":"skip","Test":"A"}
not json
{"Action":"run","Test":"B"}
{"Action":"run","Test":"C"}
{"Action":"output","Test":"C","Output":"not today\n"}
{"Action":"skip","Test":"C"}
{"Action":"pass"}
`))
	require.NoError(t, err)
	require.Len(t, results, 3)
	why, ok := excused(results[0])
	assert.True(t, ok)
	assert.Equal(t, "share groups come later", why)
	assert.Equal(t, "did not end", results[1].action)
	_, ok = excused(results[2])
	assert.False(t, ok)
}
