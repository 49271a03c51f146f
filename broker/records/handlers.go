package records

import (
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/mainstem/mainstem/broker/config"
	"github.com/mainstem/mainstem/broker/metrics"
	"github.com/mainstem/mainstem/broker/quota"
	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/protocol"
)

// DefaultFetchMemory bounds the records of all fetch answers that are not written
// yet. A fetch that comes close to the bound still gets a batch, so that it goes on;
// one that meets it waits, and comes back empty-handed in the end.
const DefaultFetchMemory = 512 << 20

// Options configure the handlers.
type Options struct {
	Replicas *replica.Set
	Live     *config.Live
	NodeID   int32
	// Enlist asks a transaction's coordinator about partitions. Without it there
	// are no transactions.
	Enlist func(e Enlistment) Enlisting
	// FetchMemory is DefaultFetchMemory if zero.
	FetchMemory int64
	// Quotas hold clients to the bytes that they may produce and fetch; nil: to none.
	Quotas *quota.Manager
	// Metrics may be nil.
	Metrics *metrics.Metrics
	// Logger may be nil.
	Logger *zap.Logger
}

// Handlers serves the requests of this package. Its methods are safe for
// concurrent use.
type Handlers struct {
	replicas *replica.Set
	live     *config.Live
	nodeID   int32
	quotas   *quota.Manager
	logger   *zap.Logger
	enlist   func(e Enlistment) Enlisting
	sessions *sessions
	memory   budget

	produces sync.Pool // of *produce
	fetches  sync.Pool // of *fetch

	parkedProduces, parkedFetches atomic.Int64
}

// New returns the handlers.
func New(o Options) *Handlers {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.Metrics == nil {
		o.Metrics = metrics.New(metrics.Options{})
	}
	if o.Quotas == nil {
		o.Quotas = quota.New(quota.Options{})
	}
	if o.FetchMemory == 0 {
		o.FetchMemory = DefaultFetchMemory
	}
	h := &Handlers{
		replicas: o.Replicas,
		live:     o.Live,
		nodeID:   o.NodeID,
		quotas:   o.Quotas,
		logger:   o.Logger,
		enlist:   o.Enlist,
		sessions: newSessions(o.Live.Values().FetchSessionSlots, &o.Metrics.SessionEvictions),
		memory:   budget{limit: o.FetchMemory},
	}
	h.produces.New = func() any { return h.newProduce() }
	h.fetches.New = func() any { return h.newFetch() }
	return h
}

// APIs is the part of the API table that the handlers serve.
func (h *Handlers) APIs() []protocol.API {
	return []protocol.API{
		h.produceAPI(),
		h.fetchAPI(),
		{Key: 2, Min: 1, Max: 11, Submit: h.listOffsets},
		{Key: 21, Min: 0, Max: 2, Submit: h.deleteRecords},
		{Key: 23, Min: 2, Max: 4, Submit: h.offsetForLeaderEpoch},
	}
}

// Sessions counts the fetch sessions and the partitions in them.
func (h *Handlers) Sessions() (sessions, partitions int) { return h.sessions.count() }

// Crowded tells whether fetches wait for memory that unread answers hold.
func (h *Handlers) Crowded() bool { return h.memory.waiting.Load() > 0 || h.memory.spent() }

// Parked counts the produce and fetch requests that wait.
func (h *Handlers) Parked() (produces, fetches int) {
	return int(h.parkedProduces.Load()), int(h.parkedFetches.Load())
}
