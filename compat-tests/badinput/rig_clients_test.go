package badinput

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/compat-tests/frames"
	"github.com/mainstem/mainstem/compat-tests/harness"
)

// write makes a topic and n records in it.
func write(t *testing.T, node *harness.Node, topic string, n int) {
	t.Helper()
	c := frames.Dial(t, node.Address)
	c.Create(1, topic)
	for i := range n {
		require.EqualValues(t, i, c.MustAppend(topic, 0, frames.NewBatch(frames.Values(fmt.Sprint(topic, " ", i))...).Seal()))
	}
}

// read finds the records of write again.
func read(t *testing.T, node *harness.Node, topic string, n int) {
	t.Helper()
	var want []string
	for i := range n {
		want = append(want, fmt.Sprint(topic, " ", i))
	}
	require.Equal(t, want, frames.Dial(t, node.Address).ReadAll(topic, 0, 0))
}
