package quota

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// idleFor is how long an account that nobody uses is remembered.
	idleFor = time.Hour
	// maxAccounts bounds the accounts of one kind. An account takes less than 1 KB.
	maxAccounts = 50_000
	// firstSweep is the number of accounts from which on they are looked through.
	firstSweep = 1024
	// sweepPause is the least time between two looks through all of them.
	sweepPause = time.Second
	// maxName is the longest name that is kept as it is.
	maxName = 128
)

// account is what was counted of those who share a quota.
type account struct {
	used atomic.Int64 // when it was used last, a time.Duration

	mu        sync.Mutex
	rate      rate
	bucket    bucket
	throttled rate
}

// accounts are those of one kind.
type accounts[K comparable] struct {
	window Window
	most   int

	mu    sync.RWMutex
	all   map[K]*account
	next  int           // look through them when there are so many
	swept time.Duration // when they were looked through last
	rest  account       // of those for whom there is no room
}

func newAccounts[K comparable](w Window) *accounts[K] {
	return &accounts[K]{window: w, most: maxAccounts, all: map[K]*account{}, next: firstSweep}
}

// get finds or makes an account.
func (a *accounts[K]) get(key K, now time.Duration) *account {
	a.mu.RLock()
	one := a.all[key]
	a.mu.RUnlock()
	if one == nil {
		one = a.add(key, now)
	}
	one.used.Store(int64(now))
	return one
}

func (a *accounts[K]) add(key K, now time.Duration) *account {
	a.mu.Lock()
	defer a.mu.Unlock()
	if one := a.all[key]; one != nil {
		return one
	}
	if len(a.all) >= a.next && now-a.swept >= sweepPause {
		a.makeRoomLocked(now)
	}
	if len(a.all) >= a.most {
		return &a.rest
	}
	one := new(account)
	one.used.Store(int64(now))
	a.all[key] = one
	return one
}

// makeRoomLocked forgets what nobody has used for long, and if that is not enough
// all that has no say any more.
//
// REQUIRES: mu held.
func (a *accounts[K]) makeRoomLocked(now time.Duration) {
	a.swept = now
	a.sweepLocked(now, idleFor)
	if len(a.all) >= a.most/2 {
		a.sweepLocked(now, a.window.whole())
	}
	a.next = min(max(2*len(a.all), firstSweep), a.most)
}

// sweep forgets accounts that nobody has used for long.
func (a *accounts[K]) sweep(now time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sweepLocked(now, idleFor)
}

// sweepLocked forgets what was not used for a time.
//
// REQUIRES: mu held.
func (a *accounts[K]) sweepLocked(now, idle time.Duration) {
	for key, one := range a.all {
		if now-time.Duration(one.used.Load()) >= idle {
			delete(a.all, key)
		}
	}
}

// some gives at most so many of the accounts.
func (a *accounts[K]) some(most int) map[K]*account {
	a.mu.RLock()
	defer a.mu.RUnlock()
	out := make(map[K]*account, min(most, len(a.all)))
	for key, one := range a.all {
		if len(out) >= most {
			break
		}
		out[key] = one
	}
	return out
}

// bounded is an account's key of bounded size: long names are told apart by their hash.
func bounded(c Client) Client {
	return Client{User: short(c.User), ID: short(c.ID)}
}

func short(name string) string {
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:maxName/2] + "…" + hex.EncodeToString(sum[:])
}
