package txn

import (
	"time"

	"github.com/mainstem/mainstem/coordinator"
)

// Options are what the machines of all partitions share.
type Options struct {
	// Settings are the broker's at this moment.
	Settings func() Settings
	// End has the markers of a decided transaction written. It is called outside of
	// turns, once the decision is committed, and must not wait; Machine.Ended is to
	// follow when all are written. After a load it may be called again for what it
	// knows already.
	End    func(e Ending)
	Events Events
}

// Events tell what machines do by themselves. Any may be nil.
type Events struct {
	// TimedOut is called when a transaction has taken too long and is aborted.
	TimedOut func(id string, producer coordinator.Producer, timeout time.Duration)
	// Expired is called when transactional ids are forgotten.
	Expired func(ids int)
}

// Settings are the configurable parts.
type Settings struct {
	// TimeoutCheck and ExpiryCheck are how often is looked for transactions that
	// take too long, and for ids that nobody uses.
	TimeoutCheck, ExpiryCheck time.Duration
	// IDExpiration is how long an id without a transaction is remembered.
	IDExpiration time.Duration
	// Patience is how long a request waits for markers of the transaction before
	// it, instead of being told to try again.
	Patience time.Duration
}

// Place is a partition of a topic, by name: Kafka's records have no more.
type Place struct {
	Topic     string
	Partition int32
}

// Ending is a transaction whose end is decided and whose markers are to be written.
type Ending struct {
	// Shard is the partition of __transaction_state that it belongs to.
	Shard int32
	// ID is the transactional id.
	ID string
	// Producer is what the markers carry.
	Producer coordinator.Producer
	Commit   bool
	// Bumped says that the epoch was raised for this end: no batch has it yet.
	Bumped bool
	// Places are the partitions of the transaction.
	Places []Place
}

// Outcome is how a request went.
type Outcome struct {
	// Producer is who the producer is from now on.
	Producer coordinator.Producer
	// Err is one of Kafka's errors, or ErrNeedsProducerID.
	Err error
}

// Promise is kept with an Outcome.
type Promise = coordinator.Promise[Outcome]

// NoProducer stands for a producer that is not known.
func NoProducer() coordinator.Producer {
	return coordinator.Producer{ID: coordinator.NoProducer, Epoch: noEpoch}
}
