package controller

import (
	"time"

	"go.uber.org/zap"
)

// TLS names the files of a TLS connection to an external etcd.
type TLS struct {
	CAFile, CertFile, KeyFile string
	ServerName                string
}

// Options configure Open.
type Options struct {
	Dir       string   // the broker's data directory; the embedded etcd lives in Dir/etcd
	Endpoints []string // of an external etcd; empty = embedded
	TLS       *TLS
	User      string
	Password  string
	Prefix    string // of all keys; default "/mainstem/"

	NodeID   int32
	LeaseTTL time.Duration // default 9 s, at least 2 s, whole seconds

	WantClusterID string // what the data directory says; "" for an empty one
	HasData       bool   // the log holds partitions

	Logger *zap.Logger
}
