package vfs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSpaceIsTakenByWritingWhereThePlatformCannotReserveIt(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	file, err := os.Create(name)
	require.NoError(t, err)
	f := &osFile{File: file}
	_, err = f.WriteAt([]byte("kept"), 0)
	require.NoError(t, err)
	const size = 2*zeroPiece + 17
	require.NoError(t, f.allocateByWriting(size))
	require.NoError(t, f.allocateByWriting(10))
	got, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Len(t, got, size)
	require.Equal(t, "kept\x00\x00", string(got[:6]))
	require.NoError(t, f.Close())
	require.Error(t, f.allocateByWriting(size+1))
}

func TestAdvanceLeavesOutWhatIsWritten(t *testing.T) {
	bufs := func() [][]byte { return [][]byte{[]byte("ab"), {}, []byte("cde"), {}} }
	require.Equal(t, bufs()[:1], advance(bufs()[:1], 0))
	require.Equal(t, [][]byte{[]byte("b"), {}, []byte("cde"), {}}, advance(bufs(), 1))
	require.Equal(t, [][]byte{[]byte("cde"), {}}, advance(bufs(), 2))
	require.Equal(t, [][]byte{[]byte("e"), {}}, advance(bufs(), 4))
	require.Empty(t, advance(bufs(), 5))
}

func TestAForeignLockFileHasNoReadablePID(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	for content, want := range map[string]int{"": 0, "junk": 0, "-5\n": 0, "123\n": 123, "99999999999999999999999999999999999": 0} {
		require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
		f, err := os.Open(name)
		require.NoError(t, err)
		require.Equal(t, want, readPID(f), content)
		require.NoError(t, f.Close())
	}
}
