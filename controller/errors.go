package controller

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

var (
	// ErrClosed is answered after Close.
	ErrClosed = errors.New("controller is closed")
	// ErrSuperseded says that another broker has registered with this node id and is alive.
	ErrSuperseded = errors.New("another broker has taken this node id")
	// ErrNotRegistered is answered to what only a registered broker may do.
	ErrNotRegistered = errors.New("this broker is not registered")
	// ErrNoSpace says that etcd's database has reached its quota and could not be made smaller.
	ErrNoSpace = errors.New("etcd's database has reached its quota")
)

// IdentityError says that this etcd is not the one that the data directory belongs to.
type IdentityError struct {
	Want, Found string // cluster ids; Found is "" when etcd has none
	Cause       string
	Remedy      string
}

// Error is one line with cause and remedy.
func (e *IdentityError) Error() string { return e.Cause + "; " + e.Remedy }

// DuplicateNodeError says that a live broker already has this node id.
type DuplicateNodeError struct {
	NodeID int32
	Holder string // where the other one listens
}

// Error is one line with cause and remedy.
func (e *DuplicateNodeError) Error() string {
	return fmt.Sprintf("node id %d is already in use by a live broker (%s); give each broker its own node.id, or stop the other one",
		e.NodeID, e.Holder)
}

// refusal is an error that a client is told: a code of Kafka's and a text of ours.
type refusal struct {
	kind *kerr.Error
	text string
}

func refuse(kind *kerr.Error, format string, args ...any) error {
	return &refusal{kind: kind, text: fmt.Sprintf(format, args...)}
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.kind }

// isFinal tells whether asking etcd again cannot help.
func isFinal(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return false
	}
	code := codes.Unknown
	var etcdErr rpctypes.EtcdError
	if errors.As(err, &etcdErr) {
		code = etcdErr.Code()
	} else if s, ok := status.FromError(err); ok {
		code = s.Code()
	}
	switch code {
	case codes.InvalidArgument, codes.PermissionDenied, codes.FailedPrecondition, codes.Unimplemented, codes.OutOfRange, codes.NotFound:
		return !errors.Is(err, rpctypes.ErrInvalidAuthToken) && !errors.Is(err, rpctypes.ErrAuthOldRevision)
	case codes.ResourceExhausted: // A message that is too large, but also an etcd that is busy or full.
		return !errors.Is(err, rpctypes.ErrTooManyRequests) && !errors.Is(err, rpctypes.ErrNoSpace)
	default:
		return false
	}
}
