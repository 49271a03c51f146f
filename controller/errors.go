package controller

import "errors"

// IdentityError says that this etcd is not the one that the data directory belongs to.
type IdentityError struct {
	Cause  string
	Remedy string
}

func (e *IdentityError) Error() string { return e.Cause + ": " + e.Remedy }

// ErrClosed is answered after Close.
var ErrClosed = errors.New("controller is closed")

// ErrSuperseded says that another live broker has registered with this node id.
var ErrSuperseded = errors.New("another broker has taken over this node id")

// DuplicateNodeError says that a live broker already has this node id.
type DuplicateNodeError struct {
	NodeID int32
	Holder string // where the other one listens
}

func (e *DuplicateNodeError) Error() string { panic("skeleton") }
