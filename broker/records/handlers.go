package records

import (
	"context"

	"go.uber.org/zap"

	"github.com/mainstem/mainstem/broker/config"
	"github.com/mainstem/mainstem/broker/metrics"
	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/protocol"
)

// Options configure the handlers.
type Options struct {
	Replicas *replica.Set
	Live     *config.Live
	NodeID   int32
	// ProducerIDs takes a block of producer ids that nobody else gets.
	ProducerIDs func(ctx context.Context) (first int64, n int, err error)
	// Metrics may be nil.
	Metrics *metrics.Metrics
	Logger  *zap.Logger
}

// Handlers serves the requests of this package.
type Handlers struct {
	replicas *replica.Set
	live     *config.Live
	nodeID   int32
}

// New returns the handlers.
func New(o Options) *Handlers { panic("skeleton") }

// APIs is the part of the API table that the handlers serve.
func (h *Handlers) APIs() []protocol.API { panic("skeleton") }

// Sessions counts the fetch sessions and the partitions in them.
func (h *Handlers) Sessions() (sessions, partitions int) { panic("skeleton") }

// Parked counts the produce and fetch requests that wait.
func (h *Handlers) Parked() (produces, fetches int) { panic("skeleton") }
