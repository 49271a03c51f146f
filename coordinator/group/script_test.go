package group

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/journaltest"
)

var rewrite = flag.Bool("rewrite", false, "renew the outputs in testdata")

// TestScripts plays groups by hand. A script is commands, each with what it has
// led to: answers, and records with -> in front of them. A # begins a comment.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			var got string
			synctest.Test(t, func(t *testing.T) { got = play(t, string(text)) })
			if *rewrite {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
				return
			}
			require.Equal(t, string(text), got)
		})
	}
}

// play runs a script and returns it with the outputs that it has.
func play(t *testing.T, text string) string {
	s := newStage(t)
	defer s.runtime.Close()
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
		s.run(command)
		synctest.Wait()
		s.collect()
		for _, l := range s.lines {
			fmt.Fprintln(&out, "  "+l)
		}
		s.lines = nil
	}
	return out.String()
}

// stage is a machine with who plays on it.
type stage struct {
	t       *testing.T
	log     *journaltest.Log
	runtime *coordinator.Runtime[*Machine]
	opts    Options
	// consumer and world are what consumer groups see.
	consumer *ConsumerSettings
	world    *world
	set      Settings
	nextID   int
	seen     int // entries of the log that were shown
	began    time.Time

	waiting []waiting
	members map[string]*actor
	deleted map[string]bool
	lines   []string
}

// actor is a member as its client knows it.
type actor struct {
	id         string
	generation int32
}

// waiting is a request whose answer has not come.
type waiting struct {
	ready func() bool
	show  func() string
}

func newStage(t *testing.T) *stage {
	s := &stage{
		t: t, log: &journaltest.Log{}, members: map[string]*actor{}, deleted: map[string]bool{}, began: time.Now(),
		consumer: scriptedConsumers(), world: newWorld(),
		set: Settings{
			InitialRebalanceDelay: 3 * time.Second, MinSessionTimeout: 6 * time.Second, MaxSessionTimeout: 30 * time.Minute,
			MaxSize: 100, OffsetMetadataMax: 20, OffsetRetention: time.Hour, OffsetRetentionCheck: 10 * time.Minute,
		},
	}
	s.opts = Options{
		Settings: func() Settings { return s.set },
		Topics:   s,
		Consumer: func(string) *ConsumerSettings { return s.consumer },
		Cluster:  s.world,
		NewID: func() string {
			s.nextID++
			return strconv.Itoa(s.nextID)
		},
	}
	s.runtime = coordinator.New(coordinator.Options[*Machine]{
		New:    func(int32) *Machine { return New(&s.opts) },
		Events: coordinator.Events{Unreadable: func(_ int32, err error) { s.lines = append(s.lines, "unreadable: "+err.Error()) }},
	})
	s.lead()
	return s
}

// Deleted tells what the script has deleted.
func (s *stage) Deleted(name string, _ TopicID) bool { return s.deleted[name] }

func (s *stage) lead() {
	j, epoch := s.log.Lead()
	s.runtime.Lead(0, epoch, j)
	synctest.Wait()
}

func (s *stage) shard() *coordinator.Shard[*Machine] { return s.runtime.Shard(0) }

// await notes a request.
func await[A any](s *stage, p *coordinator.Promise[A], show func(a A) string) {
	s.waiting = append(s.waiting, waiting{p.Ready, func() string {
		a, err := p.Wait(s.t.Context(), nil)
		if err != nil {
			return "failed: " + errorName(codeOf(err))
		}
		return show(a)
	}})
}

// collect shows the answers that have come, and what was written.
func (s *stage) collect() {
	s.waiting = slices.DeleteFunc(s.waiting, func(w waiting) bool {
		if !w.ready() {
			return false
		}
		s.lines = append(s.lines, w.show())
		return true
	})
	entries := s.log.Entries(s.seen)
	s.seen += len(entries)
	for i := range entries {
		s.lines = append(s.lines, showEntry(&entries[i])...)
	}
}

// run runs a command: its name, words, and name=value.
func (s *stage) run(command string) {
	words := strings.Fields(command)
	a := args{s: s, named: map[string]string{}}
	for _, w := range words[1:] {
		if k, v, ok := strings.Cut(w, "="); ok {
			a.named[k] = v
			continue
		}
		a.words = append(a.words, w)
	}
	play := map[string]func(*stage, *args){
		"join": (*stage).join, "sync": (*stage).sync, "beat": (*stage).beat, "leave": (*stage).leave,
		"commit": (*stage).commit, "fetch": (*stage).fetch, "txn": (*stage).txn, "end": (*stage).end,
		"list": (*stage).list, "describe": (*stage).describe, "delete": (*stage).delete, "forget": (*stage).forget,
		"delete-offsets": (*stage).deleteOffsets, "advance": (*stage).advance, "restart": (*stage).restart,
		"set": (*stage).change,
	}[words[0]]
	if play == nil {
		play = consumerCommands()[words[0]]
	}
	require.NotNil(s.t, play, "command %q", command)
	play(s, &a)
}

// args are the arguments of a command.
type args struct {
	s     *stage
	words []string
	named map[string]string
}

func (a *args) str(name, otherwise string) string {
	if v, ok := a.named[name]; ok {
		return v
	}
	return otherwise
}

func (a *args) opt(name string) *string {
	if v, ok := a.named[name]; ok {
		return &v
	}
	return nil
}

func (a *args) num(name string, otherwise int64) int64 {
	v, ok := a.named[name]
	if !ok {
		return otherwise
	}
	n, err := strconv.ParseInt(v, 10, 64)
	require.NoError(a.s.t, err)
	return n
}

func (a *args) duration(name string, otherwise time.Duration) time.Duration {
	v, ok := a.named[name]
	if !ok {
		return otherwise
	}
	return a.s.parse(v)
}

func (s *stage) parse(v string) time.Duration {
	d, err := time.ParseDuration(v)
	require.NoError(s.t, err)
	return d
}

// who is the actor of the first word, and the id that it names itself by.
func (a *args) who() (name string, x *actor, id string) {
	if len(a.words) > 0 {
		name = a.words[0]
	}
	if x = a.s.members[name]; x == nil {
		x = &actor{generation: -1}
		a.s.members[name] = x
	}
	return name, x, a.str("id", x.id)
}
