package protocol

import (
	"context"
	"net"
)

// Server listens for clients and serves them.
type Server struct{}

// Listen takes the addresses; nobody is served before Serve.
func Listen(o Options) (*Server, error) { panic("skeleton") }

// Serve starts serving and returns at once.
func (s *Server) Serve() { panic("skeleton") }

// Addrs are the addresses listened on, by listener name.
func (s *Server) Addrs() map[string]net.Addr { panic("skeleton") }

// SetLimits changes the limits on connections while serving.
func (s *Server) SetLimits(l Limits) { panic("skeleton") }

// Drain takes no new connections and no new requests, ends what waits by
// closing Call.Draining, and closes each connection once its answers are sent.
// It does not wait.
func (s *Server) Drain() { panic("skeleton") }

// Close drains, waits for the connections to end, and cuts those that are left
// when ctx ends.
func (s *Server) Close(ctx context.Context) error { panic("skeleton") }
