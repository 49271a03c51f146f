package fieldcases

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/compat-tests/frames"
	"github.com/mainstem/mainstem/compat-tests/harness"
)

// Two cases of this class are in the package crashtest, where the load is:
// O-ST-1 is TestKillUnderLoad, O-ST-3 is TestDeliveredNeverChanges.

// damage is what a crash or a disk did to the end of the log.
type damage struct {
	name  string
	loses int64 // so many of the last records may be gone
	do    func(t *testing.T, last frame, salt []byte)
}

func damages() []damage {
	cut := func(n int64) func(*testing.T, frame, []byte) {
		return func(t *testing.T, last frame, _ []byte) { require.NoError(t, os.Truncate(last.file, last.end-n)) }
	}
	behind := func(with []byte) func(*testing.T, frame, []byte) {
		return func(t *testing.T, last frame, _ []byte) { patch(t, last.file, (last.end+7)/8*8, with) }
	}
	random := make([]byte, 4096)
	rng := rand.New(rand.NewPCG(2, 2))
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	return []damage{
		{"1 byte cut off", 1, cut(1)},
		{"7 bytes cut off", 1, cut(7)},
		{"100 bytes cut off", 1, cut(100)},
		{"a bit of the record", 1, func(t *testing.T, last frame, _ []byte) { flip(t, last.file, last.end-4) }},
		{"a bit of the header", 1, func(t *testing.T, last frame, _ []byte) { flip(t, last.file, last.start+58) }},
		{"the file ends behind the record", 0, cut(0)},
		{"4 KiB of zeros behind it", 0, behind(make([]byte, 4096))},
		{"4 KiB of ones behind it", 0, behind(bytes.Repeat([]byte{0xff}, 4096))},
		{"4 KiB of noise behind it", 0, behind(random)},
		{"a header with a huge length behind it", 0, func(t *testing.T, last frame, salt []byte) {
			patch(t, last.file, (last.end+7)/8*8, hugeFrame(t, last, salt))
		}},
	}
}

// TestDamagedTailIsCut is O-ST-2: after a kill and damage to what was written
// last, the broker starts by itself, has lost no more than the record that was
// hit, and goes on at the next offset.
func TestDamagedTailIsCut(t *testing.T) {
	node := harness.Start(t, "mainstem.commitlog.segment.bytes=1048576")
	c := frames.Dial(t, node.Address)
	c.Create(1, "t")
	var values []string
	produce := func(c *frames.Conn) {
		for range 3 {
			value := fmt.Sprintf("record %d %s", len(values), strings.Repeat("x", 200))
			require.EqualValues(t, len(values), c.MustAppend("t", 0, good(value)))
			values = append(values, value)
		}
	}
	produce(c)
	for _, d := range damages() {
		node.Kill()
		last, salt := lastData(t, node)
		d.do(t, last, salt)
		require.NoError(t, node.Start(), d.name)
		c := frames.Dial(t, node.Address)
		end := c.End("t", 0)
		require.LessOrEqual(t, end, int64(len(values)), d.name)
		require.GreaterOrEqual(t, end, int64(len(values))-d.loses, d.name)
		values = values[:end]
		require.Equal(t, values, c.ReadAll("t", 0, 0), d.name)
		produce(c)
		require.Equal(t, values, c.ReadAll("t", 0, 0), d.name)
	}
	require.NoError(t, node.Stop())
	assert.Zero(t, harness.Run(t, "log", "check", node.Dir).Code, "nothing is left of the damage")
}

// TestDamageInTheMiddleStopsNothingElse is the rest of O-ST-2: a record that
// reached the disk and changed there is reported and not served; every other
// record of its partition, and all other partitions, are.
func TestDamageInTheMiddleStopsNothingElse(t *testing.T) {
	node := harness.Start(t, "mainstem.commitlog.segment.bytes=1048576")
	c := frames.Dial(t, node.Address)
	c.Create(1, "hurt", "whole")
	filler := strings.Repeat("x", 10_000)
	const records = 200
	for i := range records {
		c.MustAppend("hurt", 0, good(fmt.Sprint("hurt ", i, " ", filler)))
		c.MustAppend("whole", 0, good(fmt.Sprint("whole ", i, " ", filler)))
	}
	node.Kill()
	marker := []byte("hurt 20 ")
	for _, s := range segments(t, node) {
		raw, err := os.ReadFile(s.file)
		require.NoError(t, err)
		if at := bytes.Index(raw, marker); at >= 0 {
			require.True(t, s.sealed())
			flip(t, s.file, int64(at+len(marker)+100))
		}
	}
	require.NoError(t, node.Start())
	c = frames.Dial(t, node.Address)
	hit := frames.Ask[*kmsg.FetchResponse](c, frames.Fetch("hurt", 20)).Topics[0].Partitions[0]
	assert.EqualValues(t, 56, hit.ErrorCode, "the damaged offset is not passed over in silence")
	assert.Empty(t, hit.RecordBatches)
	assert.Len(t, c.ReadAll("whole", 0, 0), records)
	assert.Len(t, c.ReadAll("hurt", 0, 21), records-21, "behind the damage")
	before := frames.Ask[*kmsg.FetchResponse](c, frames.Fetch("hurt", 0)).Topics[0].Partitions[0]
	batches, err := frames.Decode(before.RecordBatches)
	require.NoError(t, err)
	assert.Len(t, batches, 20, "up to the damage")
	require.EqualValues(t, records, c.MustAppend("hurt", 0, good("later")))
	assert.NotEmpty(t, node.Lines("hurt"), "the log names it")

	require.NoError(t, node.Stop())
	checked := harness.Run(t, "log", "check", node.Dir)
	assert.Equal(t, 30, checked.Code, checked.Output)
	assert.Contains(t, checked.Output, "partition hurt-0, offsets 20 to 20")
	assert.NotContains(t, checked.Output, "whole")
	require.NoError(t, node.Start(), "a damaged record keeps no broker from starting")
	c = frames.Dial(t, node.Address)
	hit = frames.Ask[*kmsg.FetchResponse](c, frames.Fetch("hurt", 20)).Topics[0].Partitions[0]
	assert.EqualValues(t, 56, hit.ErrorCode, "nor is it forgotten")
}
