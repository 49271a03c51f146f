package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/goleak"

	"github.com/mainstem/mainstem/broker"
	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/log/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// outcome is what a run of the command line left behind.
type outcome struct {
	code     int
	out, err string
}

// cli runs a command with input and environment.
func cli(t *testing.T, input string, env map[string]string, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	c := &console{
		in: strings.NewReader(input), out: &out, err: &errs,
		getenv:  func(name string) string { return env[name] },
		program: "mainstem",
		signals: func() (<-chan os.Signal, func()) { return make(chan os.Signal), func() {} },
	}
	for k, v := range env {
		c.environ = append(c.environ, k+"="+v)
	}
	code := run(context.Background(), args, c)
	return outcome{code, out.String(), errs.String()}
}

// requireOneLine asserts a failure with one line that has all the words.
func requireOneLine(t *testing.T, o outcome, code int, words ...string) {
	t.Helper()
	require.Equal(t, code, o.code, o.err)
	require.Equal(t, 1, strings.Count(o.err, "\n"), "more or less than one line: %s", o.err)
	require.True(t, strings.HasPrefix(o.err, "mainstem: "), o.err)
	for _, w := range words {
		require.Contains(t, o.err, w)
	}
}

func TestMistakesOnTheCommandLineSayWhatToType(t *testing.T) {
	for _, c := range []struct {
		args  string
		words []string
	}{
		{"topci list", []string{`unknown command "topci"`, "Did you mean 'mainstem topic'?"}},
		{"topic lst", []string{`unknown command "lst"`, "mainstem topic list"}},
		{"frobnicate", []string{"unknown command", "--help"}},
		{"topic create", []string{"missing the topic's name", "Usage: mainstem topic create TOPIC..."}},
		{"produce a b", []string{`unexpected argument "b"`}},
		{"consume", []string{"missing the topic's name"}},
		{"topic list --nope", []string{"unknown flag: --nope", "mainstem topic list --help"}},
		{"topic create t --config noequals", []string{`"noequals" is not name=value`}},
		{"topic alter t", []string{"nothing to alter", "--set"}},
		{"produce t --compression brotli", []string{`"brotli"`, "zstd"}},
		{"produce t --acks 2", []string{`"2"`, "all, 1 or 0"}},
		{"produce t --json --whole", []string{"none of the others can be"}},
		{"consume t --offset soon", []string{`"soon" is not an offset`, "beginning"}},
		{"consume t --offset @soon", []string{`"@soon" is not a time`}},
		{"consume t --isolation chaos", []string{`"chaos"`}},
		{"consume t --format %Q", []string{"--format"}},
		{"serve a b", []string{`unexpected argument "b"`}},
		{"serve --log-level loud", []string{`"loud"`, "debug, info, warn or error"}},
		{"serve --log-format xml", []string{`"xml"`}},
		{"serve --override novalue", []string{"novalue"}},
		{"version x", []string{`unexpected argument "x"`}},
	} {
		o := cli(t, "", nil, strings.Fields(c.args)...)
		t.Log(c.args, "→", strings.TrimSpace(o.err))
		requireOneLine(t, o, exitUsage, c.words...)
		require.Empty(t, o.out)
	}
}

func TestHelpListsExitCodesAndCommands(t *testing.T) {
	o := cli(t, "", nil, "--help")
	require.Zero(t, o.code)
	for _, want := range []string{"serve", "topic", "produce", "consume", "cluster", "log", "completion", "Exit codes:", "20  no broker answers"} {
		require.Contains(t, o.out, want)
	}
	o = cli(t, "", nil, "topic")
	require.Zero(t, o.code)
	require.Contains(t, o.out, "describe")
}

func TestEveryExitCodeIsDocumentedOnce(t *testing.T) {
	for _, code := range []int{
		exitOK, exitOther, exitUsage, exitConfig, exitAddress, exitDirectory, exitLocked, exitIdentity,
		exitFormat, exitNoSpace, exitMetadata, exitPoisoned, exitCorrupt, exitUnreachable, exitRefused, exitDamaged,
	} {
		require.Equal(t, 1, strings.Count(exitCodes, fmt.Sprintf("\n%4d  ", code)), "exit code %d", code)
	}
}

func TestVersionIsShownForPeopleAndPrograms(t *testing.T) {
	o := cli(t, "", nil, "version")
	require.Zero(t, o.code)
	require.True(t, strings.HasPrefix(o.out, "mainstem "), o.out)
	o = cli(t, "", nil, "version", "--json")
	var v versionInfo
	require.NoError(t, json.Unmarshal([]byte(o.out), &v))
	require.Equal(t, versionText(), v.Version)
}

func TestCompletionIsMadeForEachShell(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		o := cli(t, "", nil, "completion", shell)
		require.Zero(t, o.code, o.err)
		require.Contains(t, o.out, "mainstem")
	}
}

func TestNoBrokerIsSaidInOneLineThatNamesTheAddress(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := closed.Addr().String()
	require.NoError(t, closed.Close())
	for _, args := range [][]string{
		{"topic", "list", "--bootstrap", address, "--timeout", "1s"},
		{"topic", "create", "t", "--bootstrap-server", address, "--timeout", "1s"},
		{"cluster", "-b", address, "--timeout", "1s"},
		{"consume", "t", "-b", address, "--timeout", "1s"},
		{"produce", "t", "-b", address, "--timeout", "2s"},
	} {
		requireOneLine(t, cli(t, "x\n", nil, args...), exitUnreachable, address, "--bootstrap")
	}
	o := cli(t, "", map[string]string{bootstrapEnv: address}, "topic", "list", "--timeout", "1s")
	requireOneLine(t, o, exitUnreachable, address)
}

func TestConfigurationMistakesAreOneLineEach(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "server.properties")
	require.NoError(t, os.WriteFile(file, []byte("num.partition=3\nnode.id=one\n"), 0o600))
	o := cli(t, "", nil, "serve", file)
	require.Equal(t, exitConfig, o.code)
	require.Contains(t, o.err, "num.partitions", "the nearest known key")
	for _, line := range strings.Split(strings.TrimSpace(o.err), "\n") {
		require.True(t, strings.HasPrefix(line, "mainstem: "), line)
	}
	requireOneLine(t, cli(t, "", nil, "serve", filepath.Join(dir, "none")), exitConfig, "no such file", "server.properties")
	requireOneLine(t, cli(t, "", nil, "serve", "--override", "num.partitions=many"), exitConfig, "num.partitions", `"many"`)
}

func TestFailuresOfABrokerHaveTheirCodeAndARemedy(t *testing.T) {
	wrap := func(err error) error { return fmt.Errorf("open: %w", err) }
	for _, c := range []struct {
		err  error
		code int
	}{
		{wrap(&net.OpError{Op: "listen", Err: syscall.EADDRINUSE}), exitAddress},
		{wrap(syscall.EADDRNOTAVAIL), exitAddress},
		{wrap(&vfs.LockedError{}), exitLocked},
		{wrap(fs.ErrPermission), exitDirectory},
		{wrap(syscall.EACCES), exitDirectory},
		{wrap(syscall.ENOTDIR), exitDirectory},
		{wrap(syscall.EROFS), exitDirectory},
		{wrap(syscall.ENOSPC), exitNoSpace},
		{wrap(log.ErrDiskFull), exitNoSpace},
		{wrap(errors.Join(log.ErrCorrupt, fs.ErrNotExist)), exitCorrupt},
		{wrap(log.ErrPoisoned), exitPoisoned},
		{wrap(broker.ErrFormatTooNew), exitFormat},
		{wrap(broker.ErrIdentity), exitIdentity},
		{wrap(broker.ErrMetadata), exitMetadata},
	} {
		f := diagnose(c.err, nil)
		require.Equal(t, c.code, f.code, "%v", c.err)
		require.NotEmpty(t, f.remedy, "%v", c.err)
		require.NotContains(t, f.line(), "\n")
	}
	require.Equal(t, exitOther, diagnose(errors.New("odd"), nil).code)
}

func TestLogToolsWantAStoppedDataDirectory(t *testing.T) {
	dir := t.TempDir()
	requireOneLine(t, cli(t, "", nil, "log", "check", filepath.Join(dir, "none")), exitDirectory, "not a data directory", "log.dirs")
	require.NoError(t, os.Mkdir(broker.LogDir(dir), 0o700))
	lock, err := vfs.OS().Lock(filepath.Join(dir, "lock"))
	require.NoError(t, err)
	defer func() { require.NoError(t, lock.Close()) }()
	for _, verb := range []string{"check", "dump"} {
		requireOneLine(t, cli(t, "", nil, "log", verb, dir), exitLocked, "Stop the broker first")
	}
}

func TestRefusalsOfABrokerKeepItsWords(t *testing.T) {
	r := &remote{bootstrap: []string{"b:1"}}
	err := r.explain(answerError("create topic x", kerr.InvalidReplicationFactor, "Unable to replicate 3 times."))
	f := diagnose(err, nil)
	require.Equal(t, exitRefused, f.code)
	require.Equal(t, "create topic x: Unable to replicate 3 times: INVALID_REPLICATION_FACTOR. 'mainstem cluster' shows how many brokers there are.", f.line())

	both := r.explain(errors.Join(
		answerError("create topic x", kerr.TopicAlreadyExists, ""),
		answerError("create topic y", kerr.InvalidTopicException, ""),
	))
	all := diagnoseAll(both, nil)
	require.Len(t, all, 2)
	require.Equal(t, exitRefused, all[1].code)
}
