package harness

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// Metric adds up the samples of a metric whose labels contain all of these
// texts, such as `request="Fetch"`.
func (n *Node) Metric(t testing.TB, name string, labels ...string) (sum float64) {
	t.Helper()
	resp, err := http.Get("http://" + n.HTTP + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
samples:
	for line := range strings.Lines(string(text)) {
		sample, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		found, rest, _ := strings.Cut(sample, "{")
		if !ok || found != name {
			continue
		}
		for _, l := range labels {
			if !strings.Contains(rest, l) {
				continue samples
			}
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("metric %s: %v", line, err)
		}
		sum += v
	}
	return sum
}
