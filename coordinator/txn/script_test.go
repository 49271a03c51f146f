package txn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/journaltest"
)

// TestScripts plays transactions by hand: answers, records with -> in front of them, and transactions whose markers
// are to be written, with ! in front.
func TestScripts(t *testing.T) {
	journaltest.Scripts(t, func(t *testing.T) journaltest.Stage { return newStage(t) })
}

// stage is a machine with who plays on it.
type stage struct {
	t       *testing.T
	log     *journaltest.Log
	runtime *coordinator.Runtime[*Machine]
	opts    Options
	set     Settings
	began   time.Time
	seen    int // entries of the log that were shown

	mu      sync.Mutex // callbacks come from the shard and from who commits
	endings []Ending   // whose markers are not written
	waiting []waiting
	lines   []string
	release func() // lets commits go on
}

// waiting is a request whose answer has not come.
type waiting struct {
	ready func() bool
	show  func() string
}

func newStage(t *testing.T) *stage {
	s := &stage{
		t: t, log: &journaltest.Log{}, began: time.Now(),
		set: Settings{
			TimeoutCheck: 10 * time.Second, ExpiryCheck: time.Hour, IDExpiration: 7 * 24 * time.Hour, Patience: 100 * time.Millisecond,
		},
	}
	s.opts = Options{
		Settings: func() Settings { return s.set },
		End: func(e Ending) {
			s.say("! " + showEnding(&e))
			s.mu.Lock()
			defer s.mu.Unlock()
			s.endings = append(s.endings, e)
		},
		Events: Events{
			TimedOut: func(id string, p coordinator.Producer, timeout time.Duration) {
				s.say(fmt.Sprintf("event: %s of %s has taken longer than %v", id, showProducer(p), timeout))
			},
			Expired: func(n int) { s.say(fmt.Sprintf("event: %d expired", n)) },
		},
	}
	s.runtime = coordinator.New(coordinator.Options[*Machine]{
		New:    func(partition int32) *Machine { return New(partition, &s.opts) },
		Events: coordinator.Events{Unreadable: func(_ int32, err error) { s.say("unreadable: " + err.Error()) }},
	})
	s.lead()
	return s
}

// say notes what a machine has done by itself.
func (s *stage) say(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line)
}

func (s *stage) lead() {
	j, epoch := s.log.Lead()
	s.runtime.Lead(0, epoch, j)
	synctest.Wait()
}

func (s *stage) shard() *coordinator.Shard[*Machine] { return s.runtime.Shard(0) }

// await notes a request.
func await[A any](s *stage, p *coordinator.Promise[A], show func(a A) string) {
	s.waiting = append(s.waiting, waiting{p.Ready, func() string {
		a, err := p.Wait(context.Background(), nil)
		if err != nil {
			return "failed: " + errorName(err)
		}
		return show(a)
	}})
}

// collect shows the answers that have come, and what was written.
func (s *stage) collect() {
	var answers []string
	s.waiting = slices.DeleteFunc(s.waiting, func(w waiting) bool {
		if !w.ready() {
			return false
		}
		answers = append(answers, w.show())
		return true
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.lines) // Many endings at once have no order.
	s.lines = append(answers, s.lines...)
	entries := s.log.Entries(s.seen)
	s.seen += len(entries)
	for i := range entries {
		for _, r := range entries[i].Records {
			s.lines = append(s.lines, "-> "+s.showRecord(r))
		}
	}
}

// Told is what has come since the last call.
func (s *stage) Told() []string {
	s.collect()
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.lines
	s.lines = nil
	return lines
}

// Close ends what the stage runs.
func (s *stage) Close() { s.runtime.Close() }

// Run begins a command.
func (s *stage) Run(name string, given *journaltest.Args) {
	play := map[string]func(*stage, *args){
		"init": (*stage).init, "add": (*stage).add, "verify": (*stage).verify, "end": (*stage).end, "written": (*stage).written,
		"describe": (*stage).describe, "list": (*stage).list, "advance": (*stage).advance, "restart": (*stage).restart,
		"restore": (*stage).restore,
		"fail":    (*stage).fail, "mend": (*stage).mend, "hold": (*stage).hold, "release": (*stage).letGo,
	}[name]
	require.NotNil(s.t, play, "command %q", name)
	play(s, &args{Args: given, s: s})
}

// args are the arguments of a command.
type args struct {
	*journaltest.Args
	s *stage
}

// producer is the one written as id/epoch in a word.
func (a *args) producer(word int) coordinator.Producer {
	id, epoch, ok := strings.Cut(a.Words[word], "/")
	require.True(a.s.t, ok, a.Words[word])
	n, err := strconv.ParseInt(id, 10, 64)
	require.NoError(a.s.t, err)
	e, err := strconv.ParseInt(epoch, 10, 16)
	require.NoError(a.s.t, err)
	return coordinator.Producer{ID: n, Epoch: int16(e)}
}

// places are those of the words from one on, as topic/partition.
func (a *args) places(from int) (list []Place) {
	for _, w := range a.Words[from:] {
		topic, partition, _ := strings.Cut(w, "/")
		n, err := strconv.Atoi(partition)
		require.NoError(a.s.t, err)
		list = append(list, Place{topic, int32(n)})
	}
	return list
}

// errorName is what a client is told of an error.
func errorName(err error) string {
	var e *kerr.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}
