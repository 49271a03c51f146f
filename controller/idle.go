package controller

import (
	"time"
	_ "unsafe" // for go:linkname

	_ "go.etcd.io/etcd/server/v3/etcdserver"   // has monitorVersionInterval
	_ "go.etcd.io/etcd/server/v3/storage/mvcc" // has watchResyncPeriod
)

// What an idle broker costs is wake-ups, and most of them were etcd's: it looks for watchers that have fallen behind ten times a second,
// and for a changed version of the cluster every 4 s. Neither period is an option, so both variables are set here, before the
// first server of the process starts. A version of etcd without them does not link.
const (
	// watchResync bounds how long a watcher that was cut off, or begins at an older revision, waits for what it missed.
	watchResync = time.Second
	// versionCheck only matters to a cluster of several members: one member finds out its version when it is elected.
	versionCheck = time.Minute
)

//go:linkname watchResyncPeriod go.etcd.io/etcd/server/v3/storage/mvcc.watchResyncPeriod
var watchResyncPeriod time.Duration

//go:linkname monitorVersionInterval go.etcd.io/etcd/server/v3/etcdserver.monitorVersionInterval
var monitorVersionInterval time.Duration

// calm makes an embedded etcd wake less often.
func calm() { watchResyncPeriod, monitorVersionInterval = watchResync, versionCheck }
