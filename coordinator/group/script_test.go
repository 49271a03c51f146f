package group

import (
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/journaltest"
)

// TestScripts plays groups by hand: answers, and records with -> in front of them.
func TestScripts(t *testing.T) {
	journaltest.Scripts(t, func(t *testing.T) journaltest.Stage { return newStage(t) })
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

// Told is what has come since the last call.
func (s *stage) Told() []string {
	s.collect()
	lines := s.lines
	s.lines = nil
	return lines
}

// Close ends what the stage runs.
func (s *stage) Close() { s.runtime.Close() }

// Run begins a command.
func (s *stage) Run(name string, given *journaltest.Args) {
	play := map[string]func(*stage, *args){
		"join": (*stage).join, "sync": (*stage).sync, "beat": (*stage).beat, "leave": (*stage).leave,
		"commit": (*stage).commit, "fetch": (*stage).fetch, "txn": (*stage).txn, "end": (*stage).end,
		"list": (*stage).list, "describe": (*stage).describe, "delete": (*stage).delete, "forget": (*stage).forget,
		"delete-offsets": (*stage).deleteOffsets, "advance": (*stage).advance, "restart": (*stage).restart,
		"set": (*stage).change,
	}[name]
	if play == nil {
		play = consumerCommands()[name]
	}
	require.NotNil(s.t, play, "command %q", name)
	play(s, &args{Args: given, s: s})
}

// args are the arguments of a command.
type args struct {
	*journaltest.Args
	s *stage
}

func (s *stage) parse(v string) time.Duration {
	d, err := time.ParseDuration(v)
	require.NoError(s.t, err)
	return d
}

// who is the actor of the first word, and the id that it names itself by.
func (a *args) who() (name string, x *actor, id string) {
	if len(a.Words) > 0 {
		name = a.Words[0]
	}
	if x = a.s.members[name]; x == nil {
		x = &actor{generation: -1}
		a.s.members[name] = x
	}
	return name, x, a.Str("id", x.id)
}
