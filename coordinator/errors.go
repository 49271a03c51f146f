package coordinator

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
)

// errStopped says that a shard was told to stop.
var errStopped = errors.New("shard was stopped")

// refusesProducer tells whether a write failed for its producer's sake: the
// partition itself is fine.
func refusesProducer(err error) bool {
	for _, e := range []*kerr.Error{
		kerr.InvalidProducerEpoch, kerr.TransactionCoordinatorFenced, kerr.InvalidTxnState, kerr.OutOfOrderSequenceNumber,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// clientError is what is told to clients whose request was lost with the state
// that it had changed: another coordinator, or this one when it has loaded again,
// knows whether it was written.
func clientError(err error) error {
	switch {
	case errors.Is(err, kerr.NotEnoughReplicas), errors.Is(err, kerr.NotEnoughReplicasAfterAppend),
		errors.Is(err, kerr.RequestTimedOut):
		return kerr.CoordinatorNotAvailable
	}
	return kerr.NotCoordinator
}
