package journaltest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Stage is what a script plays on: a machine, and who asks it.
type Stage interface {
	// Run begins a command.
	Run(name string, args *Args)

	// Told are the lines of what has come of the commands since the last call.
	Told() []string

	Close()
}

// Scripts plays each testdata/*.txt on a stage of its own, under virtual time. A script is commands, each with what it
// has led to in indented lines. A # begins a comment. With `-rewrite` the outputs in the files are renewed.
func Scripts(t *testing.T, open func(*testing.T) Stage) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			var got string
			synctest.Test(t, func(t *testing.T) { got = play(t, open(t), string(text)) })
			if *rewrite {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
				return
			}
			require.Equal(t, string(text), got)
		})
	}
}

var rewrite = flag.Bool("rewrite", false, "renew the outputs in testdata")

// play runs a script and returns it with the outputs that it has.
func play(t *testing.T, s Stage, text string) string {
	defer s.Close()
	var out bytes.Buffer
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if strings.HasPrefix(line, "  ") {
			continue // An output of before.
		}
		fmt.Fprintln(&out, line)
		command := strings.TrimSpace(line)
		if command == "" || command[0] == '#' {
			continue
		}
		s.Run(Parse(t, command))
		synctest.Wait()
		for _, l := range s.Told() {
			fmt.Fprintln(&out, "  "+l)
		}
	}
	return out.String()
}

// Parse takes a command apart: its name, words, and name=value.
func Parse(t *testing.T, command string) (string, *Args) {
	words := strings.Fields(command)
	a := &Args{t: t, Named: map[string]string{}}
	for _, w := range words[1:] {
		if k, v, ok := strings.Cut(w, "="); ok {
			a.Named[k] = v
			continue
		}
		a.Words = append(a.Words, w)
	}
	return words[0], a
}

// Args are the arguments of a command: words, and those that have a name.
type Args struct {
	Words []string

	t     *testing.T
	Named map[string]string
}

// Opt is the argument of that name, nil if it is not there.
func (a *Args) Opt(name string) *string {
	if v, ok := a.Named[name]; ok {
		return &v
	}
	return nil
}

// Str is the argument of that name.
func (a *Args) Str(name, otherwise string) string {
	if v, ok := a.Named[name]; ok {
		return v
	}
	return otherwise
}

// Num is the whole number of that name.
func (a *Args) Num(name string, otherwise int64) int64 {
	v, ok := a.Named[name]
	if !ok {
		return otherwise
	}
	n, err := strconv.ParseInt(v, 10, 64)
	require.NoError(a.t, err)
	return n
}

// Duration is the time of that name, such as 10s.
func (a *Args) Duration(name string, otherwise time.Duration) time.Duration {
	v, ok := a.Named[name]
	if !ok {
		return otherwise
	}
	d, err := time.ParseDuration(v)
	require.NoError(a.t, err)
	return d
}
