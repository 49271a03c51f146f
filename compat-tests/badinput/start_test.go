package badinput

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/compat-tests/harness"
)

// TestAddressInUse names the address and what to choose instead.
func TestAddressInUse(t *testing.T) {
	t.Parallel()
	address := taken(t)
	refused(t, serve(t, fresh(t), "listeners=PLAINTEXT://"+address), exitAddress, address, "in use", "listeners=")
	refused(t, serve(t, fresh(t), "mainstem.http.listener="+address), exitAddress, address, "in use", "mainstem.http.listener")
	refused(t, serve(t, fresh(t), "listeners=PLAINTEXT://192.0.2.1:0"), exitAddress, "192.0.2.1", "advertised.listeners")
}

// TestDirectoryThatCannotBeUsed tells missing rights, a file, and a directory
// that another broker has.
func TestDirectoryThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	refused(t, serve(t, file), exitDirectory, file, "log.dirs")
	refused(t, serve(t, filepath.Join(file, "below")), exitDirectory, file, "log.dirs")

	node := harness.Start(t)
	refused(t, serve(t, node.Dir), exitLocked, node.Dir, "Stop the other", "log.dirs")
	checked := harness.Run(t, "log", "check", node.Dir)
	assert.Equal(t, exitLocked, checked.Code, checked.Output)
	assert.True(t, node.Ready(), "the one that runs is not disturbed")
}

// TestDirectoryOfAnotherUser is run by root, as somebody else.
func TestDirectoryOfAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can run a broker as another user")
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("", "mainstem-rights-")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	require.NoError(t, os.Chmod(dir, 0o755))
	refused(t, harness.RunAs(t, nobody, serveArgs(filepath.Join(dir, "data"))...), exitDirectory, dir, "permission denied", "right to write")

	mine := filepath.Join(dir, "mine")
	require.NoError(t, os.Mkdir(mine, 0o700))
	refused(t, harness.RunAs(t, nobody, serveArgs(mine)...), exitDirectory, mine, "permission denied")
}

// TestBadSettings is one line a mistake: what was given, what is right.
func TestBadSettings(t *testing.T) {
	t.Parallel()
	dir := fresh(t)
	for _, bad := range []struct {
		setting string
		words   []string
	}{
		{"num.partition=3", []string{"num.partition", "num.partitions"}},
		{"num.partitions=many", []string{"num.partitions", "many"}},
		{"num.partitions=0", []string{"num.partitions", "0"}},
		{"log.retention.ms=1e3", []string{"log.retention.ms", "1e3"}},
		{"compression.type=SNAPPY", []string{"compression.type", "SNAPPY", "snappy"}},
		{"mainstem.durability=maybe", []string{"mainstem.durability", "maybe", "fsync", "async"}},
		{"mainstem.commitlog.segment.bytes=1", []string{"mainstem.commitlog.segment.bytes", "1048576"}},
		{"listeners=127.0.0.1:9092", []string{"listeners", "PLAINTEXT://"}},
		{"listeners=PLAINTEXT://127.0.0.1:99999", []string{"listeners", "99999"}},
		{"listeners=SSL://127.0.0.1:0", []string{"SSL", "PLAINTEXT"}},
		{"advertised.listeners=PLAINTEXT://0.0.0.0:9092", []string{"advertised.listeners", "0.0.0.0"}},
		{"advertised.listeners=PLAINTEXT://[::]:9092", []string{"advertised.listeners", "::"}},
		{"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer", []string{"authorizer.class.name"}},
		{"node.id=-5", []string{"node.id", "-5"}},
		{"log.dirs=/tmp/one,/tmp/two", []string{"log.dirs"}},
	} {
		refused(t, serve(t, dir, bad.setting), exitConfig, bad.words...)
	}
	many := serve(t, dir, "num.partition=3", "num.io.threads=none")
	assert.Equal(t, exitConfig, many.Code)
	assert.Equal(t, 2, strings.Count(many.Output, "mainstem: "), "a line for each:\n%s", many.Output)
	for word, args := range map[string][]string{
		"mainstem serve --help": {"serve", "--no-such-flag"}, "Did you mean 'mainstem serve'": {"serv"},
		"expected key=value": {"serve", "--override", "no-equals-sign"}, "Usage: mainstem serve": {"serve", "a", "b"},
	} {
		refused(t, harness.Run(t, args...), exitUsage, word)
	}
	refused(t, harness.Run(t, "serve", filepath.Join(dir, "none.properties")), exitConfig, "none.properties")
	_, err := os.Stat(dir)
	assert.ErrorIs(t, err, os.ErrNotExist, "a refused broker leaves nothing behind")
}

// TestUnknownSettingsAreIgnoredLeniently is how Kafka treats them.
func TestUnknownSettingsAreIgnoredLeniently(t *testing.T) {
	t.Parallel()
	dir := fresh(t)
	// The second mistake still ends it, so the first was passed over.
	args := append(serveArgs(dir, "no.such.key=1", "num.partitions=0"), "--lenient")
	refused(t, harness.Run(t, args...), exitConfig, "num.partitions")
}

// TestNewerFormat says that a newer version has written here, and changes nothing.
func TestNewerFormat(t *testing.T) {
	t.Parallel()
	node := stopped(t)
	manifest := filepath.Join(node.Dir, "commitlog", "manifest")
	raw, err := os.ReadFile(manifest)
	require.NoError(t, err)
	require.Equal(t, "MSTEMMAN", string(raw[:8]))
	newer := append([]byte{}, raw...)
	binary.LittleEndian.PutUint16(newer[8:], binary.LittleEndian.Uint16(raw[8:])+1)
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	binary.LittleEndian.PutUint32(newer[12:], crc32.Update(crc32.Checksum(newer[:12], castagnoli), castagnoli, newer[16:]))
	require.NoError(t, os.WriteFile(manifest, newer, 0o600))
	refused(t, serve(t, node.Dir), exitFormat, "version", "newer")
	after, err := os.ReadFile(manifest)
	require.NoError(t, err)
	require.Equal(t, newer, after)
	require.NoError(t, os.WriteFile(manifest, raw, 0o600))
	require.NoError(t, node.Start())
	read(t, node, "kept", 10)
}

// TestDiskTooSmallToStart says so before anything is served.
func TestDiskTooSmallToStart(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, "4m")
	refused(t, serve(t, filepath.Join(disk, "data")), exitNoSpace, disk, "no space", "log.dirs")
}
