package clients

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/compat-tests/frames"
	"github.com/mainstem/mainstem/compat-tests/harness"
)

// TestLargestBatch is the default of max.message.bytes to the byte: a batch, its
// header included, of 1,048,588 bytes is taken, and one byte more is not.
func TestLargestBatch(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	c.Create(1, "t")
	const limit = 1_048_588
	sized := func(n int) []byte {
		overhead := len(frames.NewBatch(frames.Values(strings.Repeat("x", limit-100))...).Seal()) - (limit - 100)
		batch := frames.NewBatch(frames.Values(strings.Repeat("x", n-overhead))...).Seal()
		require.Len(t, batch, n)
		return batch
	}
	assert.EqualValues(t, 10, c.Append("t", 0, sized(limit+1)).ErrorCode)
	largest := c.Append("t", 0, sized(limit))
	require.Zero(t, largest.ErrorCode)
	assert.Zero(t, largest.BaseOffset)
	assert.Len(t, c.ReadAll("t", 0, 0), 1, "and it is read with the defaults")
}
