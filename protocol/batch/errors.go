package batch

import (
	"errors"
	"fmt"
)

// The kinds of refusal.
var (
	// ErrUndelimited is the Kind of bytes that cannot be taken apart into batches at all: CORRUPT_MESSAGE (2) for every
	// partition of the request.
	ErrUndelimited = errors.New("records cannot be taken apart into batches")
	// ErrCorrupt is the Kind of a batch that was damaged on the way: CORRUPT_MESSAGE (2), which clients retry.
	ErrCorrupt = errors.New("batch is corrupt")
	// ErrInvalidRecord is the Kind of a batch that breaks a rule: INVALID_RECORD (87).
	ErrInvalidRecord = errors.New("record is invalid")
	// ErrInvalidTimestamp is the Kind of a batch with a timestamp that is out of bounds or of the wrong type: INVALID_TIMESTAMP
	// (32).
	ErrInvalidTimestamp = errors.New("timestamp is invalid")
)

// InvalidError says why a batch was refused.
type InvalidError struct {
	Kind    error         // One of the kinds above; errors.Is finds it.
	Records []RecordError // The records that are refused, where they can be told apart; at most a thousand of them.
	Message string        // The reason.
	Shown   bool          // Kafka shows such a message to the client; without it the client sees the code only.
}

// RecordError names a record that was refused.
type RecordError struct {
	Index   int32 // Counted from 0 within the batch.
	Message string
}

// Error returns the reason.
func (e *InvalidError) Error() string { return e.Message }

// Unwrap returns Kind.
func (e *InvalidError) Unwrap() error { return e.Kind }

func invalid(kind error, format string, args ...any) *InvalidError {
	return &InvalidError{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// shown is invalid with a message that the client gets to see.
func shown(kind error, format string, args ...any) *InvalidError {
	e := invalid(kind, format, args...)
	e.Shown = true
	return e
}
