package controller

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"
)

// TLS names the files of a TLS connection to an external etcd. Each may be empty.
type TLS struct {
	CAFile            string // who signed etcd's certificate; empty = the system's roots
	CertFile, KeyFile string // of the client
	ServerName        string // that etcd's certificate must have, if it is not the endpoint's host
}

// Options configure Open.
type Options struct {
	Dir       string   // the broker's data directory; the embedded etcd lives in Dir/etcd
	Endpoints []string // of an external etcd, host:port or URL; empty = embedded
	TLS       *TLS     // nil = plain, unless an endpoint says https
	User      string
	Password  string
	Prefix    string // of all keys; default "/mainstem/"

	NodeID   int32
	LeaseTTL time.Duration // whole seconds, at least 2; default 9 s, as broker.session.timeout.ms

	WantClusterID string // what the data directory says; "" for an empty one
	HasData       bool   // the log holds partitions

	Logger *zap.Logger // nil = none

	// Levels are the features' levels that a cluster begins with if this client makes it, where they are not the defaults.
	Levels map[string]int16

	quota     int64 // of the embedded etcd, in bytes
	listLimit int64 // keys in one answer
}

const (
	defaultPrefix   = "/mainstem/"
	defaultLeaseTTL = 9 * time.Second
	minLeaseTTL     = 2 * time.Second
	listLimit       = 10_000
)

// fill sets defaults and checks.
func (o *Options) fill() error {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.Prefix == "" {
		o.Prefix = defaultPrefix
	}
	if !strings.HasSuffix(o.Prefix, "/") {
		o.Prefix += "/"
	}
	if o.LeaseTTL == 0 {
		o.LeaseTTL = defaultLeaseTTL
	}
	if o.quota == 0 {
		o.quota = quotaBytes
	}
	if o.listLimit == 0 {
		o.listLimit = listLimit
	}
	switch {
	case o.LeaseTTL < minLeaseTTL || o.LeaseTTL%time.Second != 0:
		return fmt.Errorf("lease of %v: want whole seconds, at least %v", o.LeaseTTL, minLeaseTTL)
	case o.NodeID < 0:
		return fmt.Errorf("node id %d: want 0 or more", o.NodeID)
	case len(o.Endpoints) == 0 && o.Dir == "":
		return errors.New("neither etcd endpoints nor a directory for an embedded etcd")
	case o.User == "" && o.Password != "":
		return errors.New("a password for etcd without a user")
	case o.TLS != nil && (o.TLS.CertFile == "") != (o.TLS.KeyFile == ""):
		return errors.New("etcd TLS: a certificate needs its key, and a key its certificate")
	}
	return nil
}

// renewEvery leaves room for two renewals that fail.
func (o *Options) renewEvery() time.Duration { return o.LeaseTTL / 3 }

// tickMs is raft's clock in the embedded etcd, in milliseconds. Its one member elects itself without waiting for ticks; a slow clock
// lets it sleep. etcd grants no lease of under three ticks.
func (o *Options) tickMs() uint { return uint((o.LeaseTTL / 6).Milliseconds()) }

// isEmbedded tells whether etcd is in this process.
func (o *Options) isEmbedded() bool { return len(o.Endpoints) == 0 }

// where names etcd in messages.
func (o *Options) where() string {
	if o.isEmbedded() {
		return "the embedded etcd in " + etcdDir(o.Dir)
	}
	return "etcd at " + strings.Join(o.Endpoints, ", ")
}
