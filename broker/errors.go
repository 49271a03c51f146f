package broker

import (
	"errors"
	"fmt"

	"github.com/mainstem/mainstem/controller"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/log"
)

// Reasons for which a broker does not start, or stops, that callers tell apart.
// The errors of the disk and of the addresses are those of the operating system.
var (
	// ErrIdentity: directory and metadata belong to different clusters or nodes.
	ErrIdentity = errors.New("data directory and metadata do not belong together")
	// ErrFormatTooNew: a newer version has written the data or the metadata.
	ErrFormatTooNew = log.ErrFormatTooNew
	// ErrMetadata: etcd refuses, or has lost, what the broker needs.
	ErrMetadata = errors.New("metadata store")
)

// metadataError gives the errors of the controller their kind.
func metadataError(err error) error {
	var identity *controller.IdentityError
	var duplicate *controller.DuplicateNodeError
	var tooNew *meta.TooNewError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &identity), errors.As(err, &duplicate), errors.Is(err, controller.ErrSuperseded):
		return kind{ErrIdentity, err}
	case errors.As(err, &tooNew):
		return kind{ErrFormatTooNew, err}
	}
	return kind{ErrMetadata, fmt.Errorf("metadata: %w", err)}
}

// logError gives the errors of the log their kind.
func logError(err error) error {
	if errors.Is(err, log.ErrIdentity) {
		return kind{ErrIdentity, err}
	}
	return err
}

// kind is an error that also is another, without its text.
type kind struct{ is, err error }

func (k kind) Error() string   { return k.err.Error() }
func (k kind) Unwrap() []error { return []error{k.err, k.is} }
