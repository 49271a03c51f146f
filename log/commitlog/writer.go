package commitlog

import "time"

// Kick has the background writer write what nobody waits for: every append that is not followed by a Commit is followed by a Kick.
func (l *Log) Kick() {
	l.mu.Lock()
	l.kickLocked()
	l.mu.Unlock()
}

// kickLocked is Kick. REQUIRES: mu held.
func (l *Log) kickLocked() {
	if l.openGroup == nil && len(l.closed) == 0 {
		return
	}
	l.kicked = true
	if !l.writing {
		l.wakeWriter()
	}
}

// backgroundWriter writes groups that nobody waits for, and sees to it that what is only written is synced before long.
func (l *Log) backgroundWriter() {
	defer l.running.Done()
	timer := time.NewTimer(l.o.AsyncDelay)
	timer.Stop()
	for {
		due := false
		select {
		case <-l.stop:
			timer.Stop()
			return
		case <-l.wakeups.writer:
		case <-timer.C:
			due = true
		}
		if l.writeUnattended(due) {
			timer.Reset(l.o.AsyncDelay)
		}
	}
}

// writeUnattended writes what was kicked, and syncs what is only written if that is due. It reports whether the timer must be set
// for what is left.
func (l *Log) writeUnattended(due bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if due {
		l.syncSoon, l.syncDue = false, len(l.unsynced) > 0 // Whoever writes just now will sync.
	}
	for !l.writing && l.poisoned == nil && (l.kicked || len(l.closed) > 0 || l.syncDue) {
		l.writing = true
		for l.roundLocked(l.nextLocked(), Written) && l.poisoned == nil {
		}
	}
	if l.syncSoon || len(l.unsynced) == 0 {
		return false
	}
	l.syncSoon = true
	return true
}
