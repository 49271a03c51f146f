package log_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/log/storetest"
	"github.com/mainstem/mainstem/log/vfs"
	"github.com/mainstem/mainstem/protocol/batch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWhatIsAppendedIsReadBackAlsoAfterRestarts(t *testing.T) {
	fs := vfs.NewMem(1)
	want := make(map[int32][]string)
	for round := range 4 {
		s, err := log.Open(storetest.Small(fs))
		require.NoError(t, err)
		require.Equal(t, true, s.CleanStart())
		if round == 0 {
			storetest.Create(t, s, 7, "orders", 3, log.Fsync)
		}
		for i := range int32(3) {
			require.NoError(t, s.BeginEpochs([]log.EpochStart{{ID: storetest.ID(7, i), Epoch: int32(round + 2)}}))
			p := s.Partition(storetest.ID(7, i))
			require.Equal(t, "orders", p.Topic())
			require.EqualValues(t, len(want[i]), p.End())
			require.Equal(t, want[i], storetest.Values(t, p, 0))
			for n := range 300 {
				v := fmt.Sprintf("%d-%d-%d %0500d", round, i, n, n)
				a := storetest.Append(t, s, p, storetest.Batch(t, batch.Spec{}, int64(1000+n), v))
				require.EqualValues(t, len(want[i]), a.BaseOffset)
				want[i] = append(want[i], v)
				require.Equal(t, p.End(), p.Durable())
			}
			require.Equal(t, want[i], storetest.Values(t, p, 0))
		}
		require.NoError(t, s.Close())
		storetest.Check(t, fs)
	}
}
