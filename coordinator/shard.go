package coordinator

import (
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// maxBatch is the size of records from which a batch is not added to.
const maxBatch = 512 << 10

// Task is a turn that was asked for from outside. One of its methods is called,
// once.
type Task[M Machine] interface {
	Run(m M, t *Turn)
	Fail(err error)
}

// Shard runs the machine of one partition while this broker leads it.
type Shard[M Machine] struct {
	partition int32
	epoch     int32
	journal   Journal
	opts      *Options[M]
	wake      chan struct{} // holds one token while there is something to look at
	stop      chan struct{} // closed when the shard is to end
	done      chan struct{} // closed when it has

	mu       sync.Mutex
	serving  bool      // guarded by mu
	stopping bool      // guarded by mu
	queue    []Task[M] // guarded by mu
}

func newShard[M Machine](partition, epoch int32, j Journal, o *Options[M]) *Shard[M] {
	return &Shard[M]{
		partition: partition, epoch: epoch, journal: j, opts: o,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
}

// Do has a task run in a turn. It does not wait. A nil shard fails it: this
// broker does not lead the partition.
func (s *Shard[M]) Do(task Task[M]) {
	if s == nil {
		task.Fail(kerr.NotCoordinator)
		return
	}
	s.mu.Lock()
	refused := s.refusalLocked()
	first := len(s.queue) == 0
	if refused == nil {
		s.queue = append(s.queue, task)
	}
	s.mu.Unlock()
	switch {
	case refused != nil:
		task.Fail(refused)
	case first:
		s.poke()
	}
}

// refusalLocked is why no turn can be had now.
// REQUIRES: mu held.
func (s *Shard[M]) refusalLocked() error {
	switch {
	case s.stopping:
		return kerr.NotCoordinator
	case !s.serving:
		return kerr.CoordinatorLoadInProgress
	}
	return nil
}

// Partition is the number of the shard's partition.
func (s *Shard[M]) Partition() int32 { return s.partition }

// Serving tells whether the machine is loaded.
func (s *Shard[M]) Serving() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.serving
}

func (s *Shard[M]) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// end tells the shard to end; it does not wait for that.
func (s *Shard[M]) end() {
	s.mu.Lock()
	first := !s.stopping
	s.stopping = true
	s.mu.Unlock()
	if first {
		close(s.stop)
	}
}

// run leads until the shard is told to end, and starts over when it fails.
func (s *Shard[M]) run() {
	defer close(s.done)
	for failed := false; ; failed = true {
		served, err := s.lead()
		select {
		case <-s.stop:
			return
		default:
		}
		// Attempts that fail like the one before are not worth telling.
		if (served || !failed) && s.opts.Events.Resigned != nil {
			s.opts.Events.Resigned(s.partition, err)
		}
		select {
		case <-s.stop:
			return
		case <-time.After(s.opts.Pause):
		}
	}
}

// lead loads a new machine and serves with it. It returns why that ended, and
// whether requests were let in.
func (s *Shard[M]) lead() (served bool, err error) {
	m := s.opts.New(s.partition)
	began, records := time.Now(), 0
	err = s.journal.Load(Replay{
		Record: func(r Record, producer int64) {
			records++
			s.unreadable(m.Replay(r, producer))
		},
		End: func(marker Marker) { s.unreadable(m.ReplayEnd(marker)) },
	}, s.stop)
	if err != nil {
		m.Resigned(clientError(err))
		return false, err
	}
	if s.opts.Events.Loaded != nil {
		s.opts.Events.Loaded(s.partition, records, time.Since(began))
	}
	c := &settling{journal: s.journal, failed: s.poke}
	t := &Turn{now: time.Now(), journal: s.journal, timers: &timers{}}
	m.Loaded(t)
	if err = s.flush(t, c); err == nil {
		s.open()
		served = true
		err = s.serve(m, t, c)
	}
	s.drop(m, t, c, err)
	return served, err
}

func (s *Shard[M]) unreadable(err error) {
	if err != nil && s.opts.Events.Unreadable != nil {
		s.opts.Events.Unreadable(s.partition, err)
	}
}

// open lets requests in.
func (s *Shard[M]) open() {
	s.mu.Lock()
	s.serving = true
	s.mu.Unlock()
}

// serve runs turns until the journal fails or the shard is told to end.
func (s *Shard[M]) serve(m M, t *Turn, c *settling) error {
	clock := time.NewTimer(0)
	defer clock.Stop()
	for {
		if at, ok := t.timers.next(); ok {
			clock.Reset(time.Until(at))
		} else {
			clock.Stop()
		}
		select {
		case <-s.stop:
			return errStopped
		case <-s.wake:
		case <-clock.C:
		}
		if err := s.turns(m, t); err != nil {
			return err
		}
		if err := s.flush(t, c); err != nil {
			return err
		}
	}
}

// turns runs what is queued and what is due.
func (s *Shard[M]) turns(m M, t *Turn) error {
	s.mu.Lock()
	tasks := s.queue
	s.queue = nil
	s.mu.Unlock()
	t.now = time.Now()
	for i, task := range tasks {
		task.Run(m, t)
		if t.err != nil {
			failAll(tasks[i+1:], clientError(t.err))
			return t.err
		}
	}
	for x := t.timers.due(t.now); x != nil; x = t.timers.due(t.now) {
		x.Fire(t)
		if t.err != nil {
			return t.err
		}
	}
	return nil
}

// flush journals what the turns have appended, and has their promises settled.
func (s *Shard[M]) flush(t *Turn, c *settling) error {
	if err := t.flush(); err != nil {
		return err
	}
	if len(t.settles) > 0 || t.end > 0 {
		c.add(t.end, t.settles)
		t.settles = nil
	}
	return c.failure()
}

// drop ends a machine's service: everybody who waits is told. What was appended
// before an orderly end is still committed and answered.
func (s *Shard[M]) drop(m M, t *Turn, c *settling, err error) {
	s.mu.Lock()
	s.serving = false
	tasks := s.queue
	s.queue = nil
	s.mu.Unlock()
	told := clientError(err)
	m.Resigned(told)
	failAll(tasks, told)
	settleAll(t.settles, err)
	t.settles = nil
	if err != errStopped { //nolint:errorlint // It is never wrapped.
		c.fail(err)
	}
	c.running.Wait()
}

func failAll[M Machine](tasks []Task[M], err error) {
	for _, task := range tasks {
		task.Fail(err)
	}
}
