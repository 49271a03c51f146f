package protocol

import (
	"net"
	"net/netip"
	"time"
)

// DefaultMaxBytes bounds a request whose API gives no bound: enough for 100,000
// partitions in one Metadata, OffsetCommit or Fetch.
const DefaultMaxBytes = 16 << 20

// Options are the options of a server. Zero values mean the defaults.
type Options struct {
	// Listeners are the addresses to listen on.
	Listeners []Listener
	// APIs is the table of what is served. ApiVersions and the SASL calls are
	// added by the server.
	APIs []API
	// Features is asked for each ApiVersions answer. Nil means none.
	Features func() Features
	// Limits on connections; Server.SetLimits changes them later.
	Limits Limits
	// MaxRequestBytes is socket.request.max.bytes; 100 MiB by default.
	MaxRequestBytes int
	// MaxInFlight bounds the requests of one connection that are submitted and
	// not answered; 100 by default. Beyond it the connection is not read.
	MaxInFlight int
	// MaxInFlightBytes bounds the bytes of the same; MaxRequestBytes by default.
	MaxInFlightBytes int
	// MaxTotalBytes bounds the memory of requests over all connections
	// (queued.max.request.bytes); 256 MiB by default, never under
	// MaxRequestBytes.
	MaxTotalBytes int
	// SendBuffer and ReceiveBuffer are the sizes of the sockets' buffers; zero
	// or less leaves them to the system.
	SendBuffer, ReceiveBuffer int
	// Backlog is the length of the listen queue; zero leaves it to the system.
	Backlog int
	// OpenFiles is how many files and sockets the process may have open; zero
	// asks the system. A part of them is kept for others than clients.
	OpenFiles int
	// Crowded tells whether requests wait for memory that answers hold. Clients
	// that do not take theirs are cut off then. Nil means never.
	Crowded func() bool
	// Quotas delay clients.
	Quotas Quotas
	// Events tells what happens.
	Events Events
}

// Listener is one address to listen on.
type Listener struct {
	// Name is the listener's name, as in Kafka's listeners.
	Name string
	// Host is empty for all interfaces.
	Host string
	// Port is zero for any.
	Port int
	// Protocol is the security protocol; only PLAINTEXT, which empty means too,
	// is served.
	Protocol string
	// Net, if set, is served instead of an address that is to be opened.
	Net net.Listener
}

// Limits bound connections. Zero means no bound.
type Limits struct {
	// IdleTimeout closes a connection without traffic
	// (connections.max.idle.ms); 10 minutes by default, less than zero for
	// never.
	IdleTimeout time.Duration
	// MaxConnections is max.connections; beyond it none is accepted until one
	// has ended.
	MaxConnections int
	// MaxConnectionsPerIP is max.connections.per.ip; beyond it a connection is
	// closed at once.
	MaxConnectionsPerIP int
	// PerIP are the exceptions (max.connections.per.ip.overrides).
	PerIP map[netip.Addr]int
	// CreationRate is max.connection.creation.rate, in connections a second.
	CreationRate int
	// Listeners are bounds of single listeners, by name; they hold beside the
	// ones above.
	Listeners map[string]ListenerLimits
}

// ListenerLimits bound the connections of one listener. Zero means no bound of
// its own.
type ListenerLimits struct {
	IdleTimeout    time.Duration
	MaxConnections int
	CreationRate   int
}

// Features is what ApiVersions tells of the cluster's features.
type Features struct {
	Supported []SupportedFeature
	Finalized []FinalizedFeature
	// Epoch orders the finalized features; clients ignore them when it is
	// negative.
	Epoch int64
}

// SupportedFeature is the range of levels that this broker can work at.
type SupportedFeature struct {
	Name     string
	Min, Max int16
}

// FinalizedFeature is the level that the cluster works at; level 0 is not shown.
type FinalizedFeature struct {
	Name  string
	Level int16
}

const (
	defaultMaxRequest  = 100 << 20
	defaultMaxTotal    = 256 << 20
	defaultMaxInFlight = 100
	defaultIdleTimeout = 10 * time.Minute
)

func (o *Options) setDefaults() {
	if o.MaxRequestBytes <= 0 {
		o.MaxRequestBytes = defaultMaxRequest
	}
	if o.MaxInFlight <= 0 {
		o.MaxInFlight = defaultMaxInFlight
	}
	if o.MaxInFlightBytes <= 0 {
		o.MaxInFlightBytes = o.MaxRequestBytes
	}
	if o.MaxTotalBytes <= 0 {
		o.MaxTotalBytes = defaultMaxTotal
	}
	o.MaxTotalBytes = max(o.MaxTotalBytes, o.MaxRequestBytes)
	if o.OpenFiles <= 0 {
		o.OpenFiles = openFiles()
	}
}
