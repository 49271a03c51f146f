package protocol

import (
	"net"
	"time"
)

// Events tells what happens on a server. Any func may be nil. They are called
// on the connections' goroutines and must return soon.
type Events struct {
	// Accepted and Closed are called once each for a connection. A nil err is an
	// ordinary end: the client hung up between requests, or the server closed.
	Accepted func(*ConnInfo)
	Closed   func(c *ConnInfo, err error)
	// Refused is called when a connection is closed for what its client sent.
	Refused func(Refusal)
	// Rejected is called when a connection is closed, or accepting is delayed,
	// by a limit.
	Rejected func(Rejection)
	// Answered is called for every answered call.
	Answered func(Exchange)
	// ErrorCode is called by Call.ErrorCode for every code but 0, so that errors
	// can be counted by API.
	ErrorCode func(key, version, code int16)
	// UnknownError is called for each error that clients see as -1.
	UnknownError func(c *ConnInfo, key, version int16, err error)
	// AcceptFailed is called when accepting fails for a reason of this machine,
	// such as too many open files; it is tried again.
	AcceptFailed func(listener string, err error)
}

// Refusal tells of a client whose connection was closed for what it sent.
type Refusal struct {
	Conn     *ConnInfo
	ClientID string
	// Key and Version are -1 where the request was not read so far.
	Key, Version int16
	// Cause is a sentence of this package: what was wrong.
	Cause string
	// Remedy is what to do about it; empty if the client is at fault.
	Remedy string
	Err    error
}

// Rejection tells of a connection that a limit has hit.
type Rejection struct {
	Listener string
	Remote   net.Addr
	// Limit is the name of the config.
	Limit string
}

// Exchange is one answered call.
type Exchange struct {
	Key, Version int16
	// RequestBytes and ResponseBytes are whole frames; ResponseBytes is zero if
	// there was no answer.
	RequestBytes, ResponseBytes int
	// Took is the time from the read request to the written answer.
	Took time.Duration
}
