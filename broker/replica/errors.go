package replica

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/log"
)

// clientError says what a client is told of an error of the store. What has no
// code of Kafka's stays as it is.
func clientError(err error) error {
	if err == nil {
		return nil
	}
	var damaged *log.StorageError
	switch {
	case errors.As(err, &damaged):
		return kerr.KafkaStorageError
	case errors.Is(err, log.ErrOffsetOutOfRange):
		return kerr.OffsetOutOfRange
	case errors.Is(err, log.ErrOutOfOrderSequence):
		return kerr.OutOfOrderSequenceNumber
	case errors.Is(err, log.ErrProducerEpoch):
		return kerr.InvalidProducerEpoch
	case errors.Is(err, log.ErrTxnState):
		return kerr.InvalidTxnState
	case errors.Is(err, log.ErrCoordinatorEpoch):
		return kerr.TransactionCoordinatorFenced
	case errors.Is(err, log.ErrDiskFull), errors.Is(err, log.ErrPoisoned):
		return kerr.KafkaStorageError
	case errors.Is(err, log.ErrTooLarge):
		return kerr.MessageTooLarge
	case errors.Is(err, log.ErrDeleted), errors.Is(err, log.ErrUnknownPartition):
		return kerr.UnknownTopicOrPartition
	case errors.Is(err, log.ErrEpoch), errors.Is(err, log.ErrClosed):
		return kerr.NotLeaderForPartition
	}
	return err
}
