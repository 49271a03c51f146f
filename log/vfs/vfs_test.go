package vfs_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log/vfs"
)

// eachFS runs a test on both filesystems; dir exists in fsys and is empty.
func eachFS(t *testing.T, test func(t *testing.T, fsys vfs.FS, dir string)) {
	t.Run("os", func(t *testing.T) { test(t, vfs.OS(), t.TempDir()) })
	t.Run("mem", func(t *testing.T) {
		m := vfs.NewMem(1)
		require.NoError(t, m.MkdirAll("/data"))
		test(t, m, "/data")
	})
}

func write(t *testing.T, f vfs.File, off int64, data string) {
	t.Helper()
	n, err := f.WriteAt([]byte(data), off)
	require.NoError(t, err)
	require.Equal(t, len(data), n)
}

func content(t *testing.T, fsys vfs.FS, name string) string {
	t.Helper()
	f, err := fsys.Open(name)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	size, err := f.Size()
	require.NoError(t, err)
	b := make([]byte, size)
	n, err := f.ReadAt(b, 0)
	if !errors.Is(err, io.EOF) {
		require.NoError(t, err)
	}
	require.Equal(t, int(size), n)
	return string(b)
}

func create(t *testing.T, fsys vfs.FS, name, data string) {
	t.Helper()
	f, err := fsys.Create(name)
	require.NoError(t, err)
	write(t, f, 0, data)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
}

func TestFilesAreWrittenAndRead(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "f")
		f, err := fsys.Create(name)
		require.NoError(t, err)
		require.Equal(t, name, f.Name())
		write(t, f, 0, "hello")
		write(t, f, 100_000, "end")
		write(t, f, 1, "a")
		n, err := f.WritevAt([][]byte{[]byte("one"), nil, []byte("two"), {}}, 10)
		require.NoError(t, err)
		require.Equal(t, 6, n)
		require.NoError(t, f.SyncData())
		require.NoError(t, f.Sync())

		b := make([]byte, 20)
		n, err = f.ReadAt(b, 0)
		require.NoError(t, err)
		require.Equal(t, 20, n)
		require.Equal(t, "hallo\x00\x00\x00\x00\x00onetwo\x00\x00\x00\x00", string(b))
		n, err = f.ReadAt(b, 99_999)
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, "\x00end", string(b[:n]))
		_, err = f.ReadAt(b, 100_003)
		require.ErrorIs(t, err, io.EOF)
		size, err := f.Size()
		require.NoError(t, err)
		require.EqualValues(t, 100_003, size)
		_, err = f.ReadAt(b, -1)
		require.Error(t, err)
		_, err = f.WriteAt(b, -1)
		require.Error(t, err)
		require.NoError(t, f.Close())
		_, err = f.WriteAt(b, 0)
		require.ErrorIs(t, err, fs.ErrClosed)
	})
}

func TestWritevAtWritesMoreBuffersThanOneCallTakes(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		f, err := fsys.Create(filepath.Join(dir, "f"))
		require.NoError(t, err)
		var bufs [][]byte
		var want []byte
		for i := range 3000 {
			piece := bytes.Repeat([]byte{byte(i)}, i%7)
			bufs, want = append(bufs, piece), append(want, piece...)
		}
		n, err := f.WritevAt(bufs, 5)
		require.NoError(t, err)
		require.Equal(t, len(want), n)
		require.NoError(t, f.Close())
		require.Equal(t, "\x00\x00\x00\x00\x00"+string(want), content(t, fsys, f.Name()))
	})
}

func TestCreateTruncates(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "f")
		create(t, fsys, name, "a long text")
		create(t, fsys, name, "short")
		require.Equal(t, "short", content(t, fsys, name))
	})
}

func TestNames(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		at := func(name string) string { return filepath.Join(dir, name) }
		require.NoError(t, fsys.MkdirAll(at("sub/deep")))
		require.NoError(t, fsys.MkdirAll(at("sub/deep")))
		create(t, fsys, at("b"), "bb")
		create(t, fsys, at("a"), "a")
		create(t, fsys, at("sub/x"), "x")
		names, err := fsys.List(dir)
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b", "sub"}, names)

		info, err := fsys.Stat(at("b"))
		require.NoError(t, err)
		require.Equal(t, vfs.Info{Size: 2}, info)
		info, err = fsys.Stat(at("sub"))
		require.NoError(t, err)
		require.True(t, info.IsDir)

		require.NoError(t, fsys.Rename(at("a"), at("b")))
		require.Equal(t, "a", content(t, fsys, at("b")))
		require.NoError(t, fsys.Rename(at("b"), at("sub/y")))
		require.NoError(t, fsys.Rename(at("sub/y"), at("sub/y")))
		require.NoError(t, fsys.Remove(at("sub/x")))
		names, err = fsys.List(at("sub"))
		require.NoError(t, err)
		require.Equal(t, []string{"deep", "y"}, names)
		require.NoError(t, fsys.SyncDir(dir))
		require.NoError(t, fsys.SyncDir(at("sub")))

		require.Error(t, fsys.Remove(at("sub")), "it is not empty")
		require.NoError(t, fsys.Remove(at("sub/deep")))
		require.NoError(t, fsys.Remove(at("sub/y")))
		require.NoError(t, fsys.Remove(at("sub")))
	})
}

func TestMissingNamesAreReported(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		gone := filepath.Join(dir, "gone")
		_, err := fsys.Open(gone)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorContains(t, err, gone)
		_, err = fsys.OpenRW(gone)
		require.ErrorIs(t, err, fs.ErrNotExist)
		_, err = fsys.Create(filepath.Join(gone, "f"))
		require.ErrorIs(t, err, fs.ErrNotExist)
		_, err = fsys.Stat(gone)
		require.ErrorIs(t, err, fs.ErrNotExist)
		_, err = fsys.List(gone)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorIs(t, fsys.Remove(gone), fs.ErrNotExist)
		require.ErrorIs(t, fsys.Rename(gone, gone+"2"), fs.ErrNotExist)
		require.ErrorIs(t, fsys.SyncDir(gone), fs.ErrNotExist)
		_, err = fsys.Lock(filepath.Join(gone, "lock"))
		require.ErrorIs(t, err, fs.ErrNotExist)
		_, _, err = fsys.Space(gone)
		require.ErrorIs(t, err, fs.ErrNotExist)
		create(t, fsys, gone, "file")
		require.Error(t, fsys.MkdirAll(filepath.Join(gone, "d")), "its parent is a file")
	})
}

func TestAFileOpenedForReadingCannotBeWritten(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "f")
		create(t, fsys, name, "x")
		f, err := fsys.Open(name)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte("y"), 0)
		require.Error(t, err)
		require.Error(t, f.Allocate(0, 10))
		require.NoError(t, f.Close())
		f, err = fsys.OpenRW(name)
		require.NoError(t, err)
		write(t, f, 1, "y")
		require.NoError(t, f.Close())
		require.Equal(t, "xy", content(t, fsys, name))
	})
}

func TestAllocateExtendsAndKeepsBytes(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		f, err := fsys.Create(filepath.Join(dir, "f"))
		require.NoError(t, err)
		write(t, f, 0, "abc")
		require.NoError(t, f.Allocate(0, 10))
		require.NoError(t, f.Allocate(0, 5))
		require.Equal(t, "abc\x00\x00\x00\x00\x00\x00\x00", content(t, fsys, f.Name()))
		require.NoError(t, f.Allocate(20, 5))
		size, err := f.Size()
		require.NoError(t, err)
		require.EqualValues(t, 25, size)
		require.Error(t, f.Allocate(-1, 5))
		require.Error(t, f.Allocate(0, 0))
		require.NoError(t, f.Close())
	})
}

func TestARemovedFileStaysReadableByItsHandles(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "f")
		create(t, fsys, name, "still here")
		f, err := fsys.Open(name)
		require.NoError(t, err)
		require.NoError(t, fsys.Remove(name))
		create(t, fsys, name, "another")
		b := make([]byte, 5)
		_, err = f.ReadAt(b, 0)
		require.NoError(t, err)
		require.Equal(t, "still", string(b))
		require.NoError(t, f.Close())
	})
}

func TestALockIsExclusiveAndNamesItsHolder(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "lock")
		first, err := fsys.Lock(name)
		require.NoError(t, err)
		_, err = fsys.Lock(name)
		require.ErrorIs(t, err, vfs.ErrLocked)
		var locked *vfs.LockedError
		require.ErrorAs(t, err, &locked)
		require.Equal(t, os.Getpid(), locked.PID)
		require.Equal(t, name, locked.Name)
		require.NoError(t, first.Close())
		second, err := fsys.Lock(name)
		require.NoError(t, err)
		require.NoError(t, second.Close())
		_, err = fsys.Stat(name)
		require.NoError(t, err, "the file stays, or two processes could lock two files of one name")
	})
}

func TestLockErrorWithoutAReadablePID(t *testing.T) {
	require.Equal(t, "lock x: held by another process", (&vfs.LockedError{Name: "x"}).Error())
	require.Equal(t, "lock x: held by process 7", (&vfs.LockedError{Name: "x", PID: 7}).Error())
}

func TestSpaceIsReported(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		free, total, err := fsys.Space(dir)
		require.NoError(t, err)
		require.NotZero(t, free)
		require.LessOrEqual(t, free, total)
	})
}

func TestWriteAtomicReplaces(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "manifest")
		require.NoError(t, vfs.WriteAtomic(fsys, name, []byte("one")))
		require.NoError(t, vfs.WriteAtomic(fsys, name, []byte("")))
		require.NoError(t, vfs.WriteAtomic(fsys, name, []byte("two")))
		require.Equal(t, "two", content(t, fsys, name))
		names, err := fsys.List(dir)
		require.NoError(t, err)
		require.Equal(t, []string{"manifest"}, names)
	})
}

func TestConcurrentWritesAtDifferentPlacesAllArrive(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		f, err := fsys.Create(filepath.Join(dir, "f"))
		require.NoError(t, err)
		const writers, pieces, size = 8, 50, 300
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range pieces {
					piece := bytes.Repeat([]byte{byte(w + 1)}, size)
					_, err := f.WriteAt(piece, int64((i*writers+w)*size))
					if err == nil {
						err = f.SyncData()
					}
					if err == nil {
						_, err = f.ReadAt(piece, int64((i*writers+w)*size))
					}
					if err != nil || piece[0] != byte(w+1) {
						t.Errorf("writer %d: %v", w, err)
						return
					}
				}
			})
		}
		wg.Wait()
		require.NoError(t, f.Close())
		got := content(t, fsys, f.Name())
		for i := range writers * pieces {
			require.Equal(t, string(bytes.Repeat([]byte{byte(i%writers + 1)}, size)), got[i*size:(i+1)*size])
		}
	})
}

func TestTruncateCutsAndExtends(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		f, err := fsys.Create(filepath.Join(dir, "f"))
		require.NoError(t, err)
		write(t, f, 0, "some bytes")
		write(t, f, 100_000, "far away")
		require.NoError(t, f.Truncate(4))
		require.Equal(t, "some", content(t, fsys, f.Name()))
		require.NoError(t, f.Truncate(8))
		require.Equal(t, "some\x00\x00\x00\x00", content(t, fsys, f.Name()))
		require.NoError(t, f.Truncate(0))
		require.Empty(t, content(t, fsys, f.Name()))
		require.Error(t, f.Truncate(-1))
		require.NoError(t, f.Close())
	})
}
