package fieldcases

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/compat-tests/harness"
)

// admin returns an admin client of the broker until the test ends.
func admin(t testing.TB, address string) *kadm.Client {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(address))
	require.NoError(t, err)
	t.Cleanup(cl.Close)
	return kadm.NewClient(cl)
}

// limited returns a context that ends a stuck test.
func limited(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// topics are the names of the broker's topics.
func topics(t testing.TB, address string) []string {
	t.Helper()
	listed, err := admin(t, address).ListTopics(limited(t))
	require.NoError(t, err)
	return listed.Names()
}

// restart stops the broker in order and starts it again.
func restart(t testing.TB, node *harness.Node) {
	t.Helper()
	require.NoError(t, node.Stop())
	require.NoError(t, node.Start())
}

// memory is what the system says of the broker's memory: resident, and reserved
// for data whether or not it was touched.
type memory struct{ resident, reserved int }

func memoryOf(t testing.TB, node *harness.Node) (m memory) {
	t.Helper()
	if raced(node.Pid()) {
		return memory{1, 1} // The race detector keeps many times what the broker does.
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", node.Pid()))
	if err != nil {
		t.Skipf("the memory of a process cannot be read here: %v", err)
	}
	for line := range strings.Lines(string(status)) {
		name, rest, _ := strings.Cut(line, ":")
		kib, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
		switch name {
		case "VmRSS":
			m.resident = kib << 10
		case "VmData":
			m.reserved = kib << 10
		}
	}
	require.NotZero(t, m.resident)
	return m
}

// raced tells whether a process was built with the race detector.
func raced(pid int) bool {
	info, err := buildinfo.ReadFile(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// number reads an environment variable that makes a test longer.
func number(t testing.TB, name string, otherwise int) int {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	require.NoError(t, err, name)
	return n
}

// address of a broker as Metadata names it.
func address(b kmsg.MetadataResponseBroker) string {
	return net.JoinHostPort(b.Host, fmt.Sprint(b.Port))
}
