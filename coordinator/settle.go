package coordinator

import "sync"

// settling waits for commits, so that the shard need not, and settles what was
// promised on them. Its goroutine exists while there is something to wait for.
type settling struct {
	journal Journal
	failed  func() // called once, when a commit has failed
	running sync.WaitGroup

	mu      sync.Mutex
	queue   []promised // in the order of their ends, guarded by mu
	busy    bool       // a goroutine is at it, guarded by mu
	pending int64      // end of the last in the queue, guarded by mu
	err     error      // why the journal cannot commit any more, guarded by mu
}

// promised is what is settled when everything before end is committed.
type promised struct {
	end     int64
	settles []settler
}

// add queues what was promised; what waits for nothing is settled at once.
func (c *settling) add(end int64, settles []settler) {
	c.mu.Lock()
	err, later := c.err, false
	if len(settles) == 0 && end <= c.pending {
		c.mu.Unlock()
		return
	}
	if err == nil && (c.busy || end > c.pending) {
		c.queue = append(c.queue, promised{end, settles})
		c.pending = max(c.pending, end)
		if !c.busy {
			c.busy = true
			c.running.Go(c.run)
		}
		later = true
	}
	c.mu.Unlock()
	if later {
		return
	}
	if err == nil {
		err = c.journal.Confirm()
	}
	settleAll(settles, err)
}

// run commits until nothing is queued.
func (c *settling) run() {
	for {
		c.mu.Lock()
		group := c.queue
		c.queue = nil
		if len(group) == 0 {
			c.busy = false
			c.mu.Unlock()
			return
		}
		err := c.err
		c.mu.Unlock()

		if err == nil {
			err = c.journal.Commit(group[len(group)-1].end)
		}
		if err != nil {
			c.fail(err)
		}
		for _, p := range group {
			settleAll(p.settles, err)
		}
	}
}

// fail has all that is promised from now on fail.
func (c *settling) fail(err error) {
	c.mu.Lock()
	first := c.err == nil
	if first {
		c.err = err
	}
	c.mu.Unlock()
	if first {
		c.failed()
	}
}

// failure is why commits fail, nil as long as they do not.
func (c *settling) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func settleAll(settles []settler, err error) {
	if err != nil {
		err = clientError(err)
	}
	for _, s := range settles {
		s.settle(err)
	}
}
