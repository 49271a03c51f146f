package vfs_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log/vfs"
)

// seeds returns how many crashes a test tries: few by default, as many as MAINSTEM_SEEDS says.
func seeds(t testing.TB) uint64 {
	n := os.Getenv("MAINSTEM_SEEDS")
	if n == "" {
		return 200
	}
	seeds, err := strconv.ParseUint(n, 10, 64)
	require.NoError(t, err)
	return seeds
}

// eachCrash runs a test with many seeds and names the one that fails.
func eachCrash(t *testing.T, test func(t *testing.T, m *vfs.Mem, rng *rand.Rand)) {
	for seed := range seeds(t) {
		m := vfs.NewMem(seed)
		require.NoError(t, m.MkdirAll("d"))
		test(t, m, rand.New(rand.NewPCG(seed, 1)))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

const sector = vfs.SectorSize

func fill(b byte, n int) string { return string(bytes.Repeat([]byte{b}, n)) }

func open(t *testing.T, fsys vfs.FS, name string) vfs.File {
	t.Helper()
	f, err := fsys.OpenRW(name)
	require.NoError(t, err)
	return f
}

// durable makes a file whose content and name survive.
func durable(t *testing.T, fsys vfs.FS, name, data string) vfs.File {
	t.Helper()
	create(t, fsys, name, data)
	require.NoError(t, fsys.SyncDir("d"))
	return open(t, fsys, name)
}

func TestSyncedBytesSurviveAndUnsyncedSectorsDoByChance(t *testing.T) {
	outcomes := map[string]int{}
	eachCrash(t, func(t *testing.T, m *vfs.Mem, rng *rand.Rand) {
		f := durable(t, m, "d/f", fill('a', 8*sector))
		write(t, f, 3*sector, fill('b', sector))
		require.NoError(t, f.SyncData())
		write(t, f, 5*sector, fill('c', 3*sector))
		write(t, f, 6*sector+100, "cc")
		got := content(t, m.Crash(rng), "d/f")
		require.Equal(t, fill('a', 3*sector)+fill('b', sector)+fill('a', sector), got[:5*sector])
		kept := ""
		for i := 5; i < 8; i++ {
			s := got[i*sector : (i+1)*sector]
			require.True(t, s == fill('a', sector) || s == fill('c', sector), "sector %d is %q", i, s[:10])
			kept += s[:1]
		}
		outcomes[kept]++
	})
	require.Len(t, outcomes, 8, "every subset of three sectors was met: %v", outcomes)
}

func TestALostSectorShowsWhatTheFileHeldBefore(t *testing.T) {
	lost := 0
	eachCrash(t, func(t *testing.T, m *vfs.Mem, rng *rand.Rand) {
		f := durable(t, m, "d/old", fill('o', 4*sector))
		require.NoError(t, m.Rename("d/old", "d/new"))
		require.NoError(t, m.SyncDir("d"))
		write(t, f, 0, fill('n', 4*sector))
		got := content(t, m.Crash(rng), "d/new")
		require.Len(t, got, 4*sector)
		lost += strings.Count(got, "o")
		require.Equal(t, len(got), strings.Count(got, "o")+strings.Count(got, "n"))
	})
	require.NotZero(t, lost)
}

func TestAnOverwrittenSectorMaySurviveAsItWasInBetween(t *testing.T) {
	seen := map[byte]int{}
	eachCrash(t, func(t *testing.T, m *vfs.Mem, rng *rand.Rand) {
		f := durable(t, m, "d/f", fill('a', sector))
		for _, b := range "bcd" {
			write(t, f, 0, fill(byte(b), sector))
		}
		seen[content(t, m.Crash(rng), "d/f")[0]]++
	})
	require.Len(t, seen, 4, "%v", seen)
}

func TestASectorIsTornOnlyWhenAsked(t *testing.T) {
	torn := func(tear bool) (n int) {
		eachCrash(t, func(t *testing.T, m *vfs.Mem, rng *rand.Rand) {
			if tear {
				m.TearSectors()
			}
			f := durable(t, m, "d/f", fill('a', sector))
			write(t, f, 0, fill('b', sector))
			got := content(t, m.Crash(rng), "d/f")
			if got[0] != got[sector-1] {
				n++
			}
			if !tear {
				return
			}
			require.NoError(t, f.Close())
		})
		return n
	}
	require.Zero(t, torn(false))
	require.NotZero(t, torn(true))
}

func TestTearingSparesBytesThatWereThereBefore(t *testing.T) {
	eachCrash(t, func(t *testing.T, m *vfs.Mem, rng *rand.Rand) {
		m.TearSectors()
		f := durable(t, m, "d/f", fill('a', 100))
		write(t, f, 100, fill('b', 100))
		got := content(t, m.Crash(rng), "d/f")
		require.Equal(t, fill('a', 100), got[:100], "an append harms nothing")
	})
}

func TestAFailedSyncLosesBytesForGoodThoughTheyCanBeRead(t *testing.T) {
	eachCrash(t, func(t *testing.T, m *vfs.Mem, rng *rand.Rand) {
		f := durable(t, m, "d/f", fill('a', 4*sector))
		write(t, f, 0, fill('b', 2*sector))
		write(t, f, 4*sector, fill('b', sector))
		f.(interface{ FailSync() }).FailSync()
		require.Equal(t, fill('b', 2*sector)+fill('a', 2*sector)+fill('b', sector), content(t, m, "d/f"))
		write(t, f, sector, "c") // This sector is written again, so the next sync covers all of it.
		write(t, f, 3*sector, fill('d', sector))
		require.NoError(t, f.SyncData(), "the kernel reports a failure once")
		require.Equal(t, fill('b', sector)+"c"+fill('b', sector-1)+fill('a', sector)+fill('d', sector)+fill('b', sector), content(t, m, "d/f"))
		require.Equal(t, fill('a', sector)+"c"+fill('b', sector-1)+fill('a', sector)+fill('d', sector), content(t, m.Crash(rng), "d/f"))
	})
}

func TestNamesSurviveAfterSyncDirElseByChanceAndIndependently(t *testing.T) {
	outcomes := map[string]int{}
	eachCrash(t, func(t *testing.T, m *vfs.Mem, rng *rand.Rand) {
		for _, name := range []string{"keep", "remove", "rename"} {
			durable(t, m, "d/"+name, name)
		}
		create(t, m, "d/create", "create")
		require.NoError(t, m.Remove("d/remove"))
		require.NoError(t, m.Rename("d/rename", "d/renamed"))
		c := m.Crash(rng)
		names, err := c.List("d")
		require.NoError(t, err)
		joined := strings.Join(names, " ")
		outcomes[joined]++
		require.Contains(t, joined, "keep")
		require.Equal(t, 1, strings.Count(joined, "rename"), "a rename is done or not: %v", joined)
		for _, name := range names {
			require.Equal(t, strings.TrimSuffix(name, "d"), strings.TrimSuffix(content(t, c, "d/"+name), "d"))
		}
	})
	require.Len(t, outcomes, 8, "%v", outcomes)
}

func TestSyncDirMakesNamesDurableButNotContents(t *testing.T) {
	lost := 0
	eachCrash(t, func(t *testing.T, m *vfs.Mem, rng *rand.Rand) {
		f, err := m.Create("d/f")
		require.NoError(t, err)
		write(t, f, 0, "data")
		durable(t, m, "d/gone", "x")
		require.NoError(t, m.Remove("d/gone"))
		require.NoError(t, m.SyncDir("d"))
		c := m.Crash(rng)
		names, err := c.List("d")
		require.NoError(t, err)
		require.Equal(t, []string{"f"}, names)
		if content(t, c, "d/f") != "data" {
			lost++
		}
	})
	require.NotZero(t, lost)
}

func TestAFailedSyncDirLosesNamesForGood(t *testing.T) {
	eachCrash(t, func(t *testing.T, m *vfs.Mem, rng *rand.Rand) {
		create(t, m, "d/lost", "x")
		m.FailSyncDir("d")
		create(t, m, "d/kept", "x")
		require.NoError(t, m.SyncDir("d"))
		require.Equal(t, "x", content(t, m, "d/lost"))
		names, err := m.Crash(rng).List("d")
		require.NoError(t, err)
		require.Equal(t, []string{"kept"}, names)
	})
}

func TestANameUsedAgainIsNotHarmedByTheRemovalOfTheOld(t *testing.T) {
	eachCrash(t, func(t *testing.T, m *vfs.Mem, rng *rand.Rand) {
		durable(t, m, "d/f", "old")
		require.NoError(t, m.Remove("d/f"))
		create(t, m, "d/f", "new")
		c := m.Crash(rng)
		if _, err := c.Stat("d/f"); err == nil {
			require.Contains(t, []string{"old", "new"}, content(t, c, "d/f"))
		} else {
			require.ErrorIs(t, err, fs.ErrNotExist)
		}
	})
}

func TestAFileThatMovesBetweenDirectoriesIsNotLost(t *testing.T) {
	eachCrash(t, func(t *testing.T, m *vfs.Mem, rng *rand.Rand) {
		require.NoError(t, m.MkdirAll("e"))
		durable(t, m, "d/f", "data")
		require.NoError(t, m.Rename("d/f", "e/g"))
		c := m.Crash(rng)
		_, old := c.Stat("d/f")
		_, moved := c.Stat("e/g")
		require.True(t, old == nil || moved == nil)
		for _, name := range []string{"d/f", "e/g"} {
			if _, err := c.Stat(name); err == nil {
				require.Equal(t, "data", content(t, c, name))
			}
		}
	})
}

func TestATruncationSurvivesAfterASyncElseByChance(t *testing.T) {
	seen := map[string]int{}
	eachCrash(t, func(t *testing.T, m *vfs.Mem, rng *rand.Rand) {
		durable(t, m, "d/created", "old content")
		durable(t, m, "d/cut", "old content")
		durable(t, m, "d/synced", "old content")
		_, err := m.Create("d/created")
		require.NoError(t, err)
		require.NoError(t, open(t, m, "d/cut").Truncate(3))
		f := open(t, m, "d/synced")
		require.NoError(t, f.Truncate(3))
		require.NoError(t, f.Sync())
		c := m.Crash(rng)
		seen[content(t, c, "d/created")+"|"+content(t, c, "d/cut")]++
		require.Equal(t, "old", content(t, c, "d/synced"))
	})
	require.Len(t, seen, 4)
	for _, s := range []string{"|old", "|old content", "old content|old", "old content|old content"} {
		require.Contains(t, seen, s)
	}
}

func TestTheSizeOfAGrownFileIsAnythingBetweenUntilASync(t *testing.T) {
	seen := map[int]int{}
	eachCrash(t, func(t *testing.T, m *vfs.Mem, rng *rand.Rand) {
		f := durable(t, m, "d/f", fill('a', 10))
		require.NoError(t, f.Allocate(0, 5000))
		write(t, f, 10, fill('b', 2000))
		got := content(t, m.Crash(rng), "d/f")
		require.Equal(t, fill('a', 10), got[:10])
		require.Empty(t, strings.Trim(got[10:], "b\x00"))
		seen[len(got)]++
	})
	require.Contains(t, seen, 10)
	require.Contains(t, seen, 5000)
	require.Greater(t, len(seen), 10)

	m := vfs.NewMem(1)
	require.NoError(t, m.MkdirAll("d"))
	f := durable(t, m, "d/f", "")
	require.NoError(t, f.Allocate(0, 5000))
	require.NoError(t, f.SyncData())
	require.Len(t, content(t, m.Crash(nil), "d/f"), 5000)
}

func TestAfterACrashTheOldFilesystemFails(t *testing.T) {
	m := vfs.NewMem(7)
	require.NoError(t, m.MkdirAll("d"))
	f := durable(t, m, "d/f", "x")
	lock, err := m.Lock("d/lock")
	require.NoError(t, err)
	require.NoError(t, m.SyncDir("d"))
	c := m.Crash(nil)

	for name, call := range map[string]func() error{
		"create":   func() error { _, err := m.Create("d/g"); return err },
		"open":     func() error { _, err := m.Open("d/f"); return err },
		"openrw":   func() error { _, err := m.OpenRW("d/f"); return err },
		"remove":   func() error { return m.Remove("d/f") },
		"rename":   func() error { return m.Rename("d/f", "d/g") },
		"mkdirall": func() error { return m.MkdirAll("e") },
		"list":     func() error { _, err := m.List("d"); return err },
		"stat":     func() error { _, err := m.Stat("d"); return err },
		"syncdir":  func() error { return m.SyncDir("d") },
		"lock":     func() error { _, err := m.Lock("d/lock"); return err },
		"space":    func() error { _, _, err := m.Space("d"); return err },
		"read":     func() error { _, err := f.ReadAt(make([]byte, 1), 0); return err },
		"write":    func() error { _, err := f.WriteAt([]byte("y"), 0); return err },
		"writev":   func() error { _, err := f.WritevAt([][]byte{[]byte("y")}, 0); return err },
		"sync":     f.Sync,
		"syncdata": f.SyncData,
		"allocate": func() error { return f.Allocate(0, 10) },
		"truncate": func() error { return f.Truncate(0) },
		"size":     func() error { _, err := f.Size(); return err },
	} {
		require.ErrorIs(t, call(), vfs.ErrCrashed, name)
	}
	require.NoError(t, f.Close())
	require.NoError(t, lock.Close())
	require.Equal(t, "x", content(t, c, "d/f"))
	lock, err = c.Lock("d/lock")
	require.NoError(t, err, "a lock does not outlive its holder")
	require.NoError(t, lock.Close())
}

func TestACrashRepeatsFromItsSeedAndHasManyOutcomes(t *testing.T) {
	run := func(seed uint64) string {
		m := vfs.NewMem(3)
		require.NoError(t, m.MkdirAll("d"))
		f := durable(t, m, "d/f", fill('a', 50*sector))
		for i := range 50 {
			write(t, f, int64(i*sector), fill('b', sector))
		}
		rng := rand.New(rand.NewPCG(seed, 0))
		first := content(t, m.Crash(rng), "d/f")
		return first + content(t, m.Crash(rng), "d/f")
	}
	outcomes := map[string]bool{}
	for seed := range uint64(20) {
		a := run(seed)
		require.Equal(t, a, run(seed))
		outcomes[a] = true
	}
	require.Greater(t, len(outcomes), 10)
}

func TestACrashCanBeCrashedAgain(t *testing.T) {
	eachCrash(t, func(t *testing.T, m *vfs.Mem, rng *rand.Rand) {
		durable(t, m, "d/f", fill('a', 3*sector))
		for _, b := range "bcd" {
			f := open(t, m, "d/f")
			write(t, f, sector, fill(byte(b), sector))
			require.NoError(t, f.SyncData())
			write(t, f, 2*sector, fill(byte(b), sector))
			m = m.Crash(rng)
			require.Equal(t, fill(byte(b), sector), content(t, m, "d/f")[sector:2*sector])
		}
		require.Equal(t, fill('a', sector), content(t, m, "d/f")[:sector])
	})
}

func TestACapacityIsKept(t *testing.T) {
	m := vfs.NewMem(1)
	require.NoError(t, m.MkdirAll("d"))
	m.SetCapacity(1000)
	f, err := m.Create("d/f")
	require.NoError(t, err)
	require.NoError(t, f.Allocate(0, 600))
	free, total, err := m.Space("d")
	require.NoError(t, err)
	require.Equal(t, []uint64{400, 1000}, []uint64{free, total})

	err = f.Allocate(600, 401)
	require.ErrorIs(t, err, vfs.ErrNoSpace)
	require.True(t, vfs.IsNoSpace(err))
	write(t, f, 0, fill('x', 600)) // Bytes that are there are overwritten at no cost.

	n, err := f.WriteAt([]byte(fill('y', 500)), 550)
	require.ErrorIs(t, err, vfs.ErrNoSpace)
	require.Equal(t, 450, n, "what fits is written, as a kernel does")
	require.Equal(t, fill('x', 550)+fill('y', 450), content(t, m, "d/f"))

	g, err := m.Create("d/g")
	require.NoError(t, err, "a name costs nothing")
	n, err = g.WriteAt([]byte("z"), 0)
	require.ErrorIs(t, err, vfs.ErrNoSpace)
	require.Zero(t, n)
	n, err = g.WriteAt([]byte("z"), 500)
	require.ErrorIs(t, err, vfs.ErrNoSpace)
	require.Zero(t, n)

	require.NoError(t, m.Remove("d/f"))
	require.ErrorIs(t, g.Allocate(0, 10), vfs.ErrNoSpace, "a handle still holds the space")
	require.NoError(t, f.Close())
	require.NoError(t, g.Allocate(0, 1000))
	require.NoError(t, g.Truncate(100))
	create(t, m, "d/h", fill('h', 900))
	require.NoError(t, m.Rename("d/g", "d/h"))
	free, _, err = m.Space("d")
	require.NoError(t, err)
	require.EqualValues(t, 900, free, "what a rename replaces is given back")

	require.NoError(t, m.SyncDir("d"))
	c := m.Crash(nil)
	free, total, err = c.Space("d")
	require.NoError(t, err)
	require.EqualValues(t, 1000, total)
	info, err := c.Stat("d/h")
	require.NoError(t, err)
	require.EqualValues(t, 1000-info.Size, free)
}

func TestALockWorksOnAFullDisk(t *testing.T) {
	m := vfs.NewMem(1)
	require.NoError(t, m.MkdirAll("d"))
	m.SetCapacity(1)
	create(t, m, "d/f", "x")
	lock, err := m.Lock("d/lock")
	require.NoError(t, err)
	_, err = m.Lock("d/lock")
	require.ErrorIs(t, err, vfs.ErrLocked)
	require.NoError(t, lock.Close())
}

func TestWhatIsAcknowledgedBeforeAConcurrentCrashSurvives(t *testing.T) {
	for seed := range seeds(t) / 10 {
		m := vfs.NewMem(seed)
		require.NoError(t, m.MkdirAll("d"))
		const writers = 4
		acked := make([]int, writers)
		var wg sync.WaitGroup
		started := make(chan struct{}, writers)
		f := durable(t, m, "d/f", fill(0, writers*sector))
		for w := range writers {
			wg.Go(func() {
				for i := 1; ; i++ {
					_, err := f.WriteAt(bytes.Repeat([]byte{byte(i)}, sector), int64(w*sector))
					if err == nil {
						err = f.SyncData()
					}
					if err != nil {
						return
					}
					acked[w] = i
					if i == 1 {
						started <- struct{}{}
					}
				}
			})
		}
		for range writers {
			<-started
		}
		c := m.Crash(rand.New(rand.NewPCG(seed, 2)))
		wg.Wait()
		got := content(t, c, "d/f")
		for w := range writers {
			b := got[w*sector]
			require.True(t, b == byte(acked[w]) || b == byte(acked[w]+1), "writer %d: acknowledged %d, found %d", w, acked[w], b)
			require.Equal(t, fill(b, sector), got[w*sector:(w+1)*sector])
		}
	}
}

// twin is one sector of the slow twin: what is read, and what a crash may leave of it.
type twin struct {
	seen string
	may  map[string]bool
}

func TestRandomHistoriesAgreeWithASlowTwin(t *testing.T) {
	const sectors = 200 // More than one chunk.
	eachCrash(t, func(t *testing.T, m *vfs.Mem, rng *rand.Rand) {
		f := durable(t, m, "d/f", fill('0', sectors*sector))
		twins := make([]twin, sectors)
		dirty := map[int]bool{}
		for i := range twins {
			twins[i] = twin{fill('0', sector), map[string]bool{fill('0', sector): true}}
		}
		for step := range 60 {
			switch rng.IntN(8) {
			case 0:
				require.NoError(t, f.SyncData())
				for i := range dirty {
					twins[i].may = map[string]bool{twins[i].seen: true}
				}
				clear(dirty)
			case 1:
				f.(interface{ FailSync() }).FailSync()
				for i := range dirty {
					delete(twins[i].may, twins[i].seen)
				}
				clear(dirty)
			default:
				at, n := rng.IntN(sectors), rng.IntN(20)+1
				for i := at; i < min(at+n, sectors); i++ {
					twins[i].seen = fmt.Sprintf("%-512d", step)
					write(t, f, int64(i*sector), twins[i].seen)
					twins[i].may[twins[i].seen] = true
					dirty[i] = true
				}
			}
		}
		seen, got := content(t, m, "d/f"), content(t, m.Crash(rng), "d/f")
		for i := range twins {
			require.Equal(t, twins[i].seen, seen[i*sector:(i+1)*sector])
			require.Contains(t, twins[i].may, got[i*sector:(i+1)*sector], "sector %d", i)
		}
	})
}
