package controller

import (
	"context"
	"errors"
	"expvar"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/config"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3compactor"
	"go.etcd.io/etcd/server/v3/features"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/mainstem/mainstem/controller/meta"
)

// The limits of the embedded etcd. The first two are etcd's defaults, which an external one has too.
const (
	maxTxnOps       = 128
	maxRequestBytes = 1536 << 10
	quotaBytes      = 2 << 30

	keptRevisions   = 1000
	walSegmentBytes = 4 << 20
	memberName      = "mainstem"
	stopGrace       = 3 * time.Second
	electionRetry   = 5 * time.Millisecond
)

// tune sets what etcd has no option for, once, before the first server of the process starts: the size of its preallocated log
// files, of which there are two at any time (64 MB each would be half of what an idle broker may take), and how often it wakes.
var tune = sync.OnceFunc(func() {
	wal.SegmentSizeBytes = walSegmentBytes
	calm()
})

// embedded is an etcd server of one member inside this process. It listens nowhere: its client calls it directly.
type embedded struct {
	server *etcdserver.EtcdServer
	failed chan struct{} // closed when etcd met something that it cannot go on after
	reason error         // why; set before failed is closed
	once   sync.Once
}

// etcdDir is where the embedded etcd lives.
func etcdDir(dir string) string { return filepath.Join(dir, "etcd") }

// embeddedExists tells whether there is an embedded etcd under dir.
func embeddedExists(dir string) (bool, error) {
	_, err := os.Stat(filepath.Join(etcdDir(dir), "member", "snap", "db"))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// walDir is where the embedded etcd's log lies.
func walDir(dir string) string { return filepath.Join(etcdDir(dir), "member", "wal") }

// hasWAL tells whether the embedded etcd under dir has a log.
func hasWAL(dir string) (bool, error) {
	files, err := os.ReadDir(walDir(dir))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	for _, f := range files {
		if filepath.Ext(f.Name()) == ".wal" {
			return true, nil
		}
	}
	return false, err
}

// startEmbedded starts etcd and waits until it serves.
func startEmbedded(ctx context.Context, o *Options) (*embedded, error) {
	tune()
	dir := etcdDir(o.Dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("start embedded etcd: %w", err)
	}
	e := &embedded{failed: make(chan struct{})}
	cfg, err := e.config(dir, o)
	if err != nil {
		return nil, fmt.Errorf("start embedded etcd: %w", err)
	}
	if err := giveUpReserve(o.Dir); err != nil {
		return nil, fmt.Errorf("start embedded etcd: %w", err)
	}
	if err := e.start(ctx, cfg); err != nil {
		return nil, fmt.Errorf("start embedded etcd in %s: %w", dir, err)
	}
	if err := e.lead(ctx); err != nil {
		e.stop()
		return nil, fmt.Errorf("start embedded etcd in %s: %w", dir, err)
	}
	if err := takeReserve(o.Dir); err != nil {
		o.Logger.Warn("no room could be set aside for the embedded etcd", zap.Error(err))
	}
	return e, nil
}

// start opens the files, on a goroutine of its own, since etcd ends the one that it cannot go on with.
func (e *embedded) start(ctx context.Context, cfg config.ServerConfig) error {
	type result struct {
		server *etcdserver.EtcdServer
		err    error
	}
	opened := make(chan result)
	go func() {
		defer func() { // It panics on some damaged files.
			if r := recover(); r != nil {
				e.fail(fmt.Errorf("its files are damaged (%v); bring them back from a backup of the data directory", r))
			}
		}()
		s, err := etcdserver.NewServer(cfg)
		if err == nil {
			s.Start()
		}
		select {
		case opened <- result{s, err}:
		case <-ctx.Done():
			if err == nil {
				s.HardStop()
			}
		}
	}()
	select {
	case r := <-opened:
		e.server = r.server
		return r.err
	case <-e.failed:
		return e.reason
	case <-ctx.Done():
		return fmt.Errorf("its files do not open; does another process use them? %w", context.Cause(ctx))
	}
}

// lead waits until the server serves. Ticks are long, so that an idle one costs little; so that it need not wait for
// one, it is told to stand for election as soon as raft has taken in what is committed. Earlier it must not: etcd
// applies and compacts ahead of raft, which then panics when it looks for changes of its membership among entries that
// are gone.
func (e *embedded) lead(ctx context.Context) error {
	id := uint64(e.server.MemberID())
	again := time.NewTicker(electionRetry)
	defer again.Stop()
	for {
		if e.server.Leader() == 0 && caughtUp(id) {
			m := &raftpb.Message{Type: raftpb.MsgTimeoutNow.Enum(), From: &id, To: &id}
			if err := e.server.Process(ctx, m); err != nil {
				return fmt.Errorf("stand for election: %w", err)
			}
		}
		select {
		case <-e.server.ReadyNotify():
			return nil
		case <-e.failed:
			return e.reason
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-again.C:
		}
	}
}

// caughtUp tells whether the raft node of a member has taken in all that is committed. etcd shows that in expvar only, and
// of the newest server in this process only: any other waits for its ticks.
func caughtUp(member uint64) bool {
	v, ok := expvar.Get("raft.status").(expvar.Func)
	if !ok {
		return false
	}
	status, ok := v.Value().(raft.Status)
	return ok && status.ID == member && status.HardState.GetCommit() > 0 && status.Applied >= status.HardState.GetCommit()
}

// config makes a server's configuration for one member.
func (e *embedded) config(dir string, o *Options) (config.ServerConfig, error) {
	peer := types.URLs{url.URL{Scheme: "http", Host: "localhost:0"}} // The member's name among peers; nothing listens there.
	log := e.logger(o.Logger)
	token := meta.FormatID(newID()) // It makes the ids of a new member and its cluster unlike all others.
	return config.ServerConfig{
		Name: memberName, DataDir: dir, NewCluster: true,
		PeerURLs: peer, ClientURLs: peer,
		InitialPeerURLsMap: types.URLsMap{memberName: peer}, InitialClusterToken: token,
		TickMs: o.tickMs(), ElectionTicks: 2, InitialElectionTickAdvance: true, PreVote: true,
		SnapshotCount: 1000, SnapshotCatchUpEntries: 16, MaxSnapFiles: 2, MaxWALFiles: 2,
		BackendBatchInterval: time.Second, BackendBatchLimit: 10000, BackendFreelistType: "map",
		AutoCompactionMode: v3compactor.ModeRevision, AutoCompactionRetention: keptRevisions,
		CompactionBatchLimit: 1000, CompactionSleepInterval: 10 * time.Millisecond,
		QuotaBackendBytes: o.quota, MaxTxnOps: maxTxnOps, MaxRequestBytes: maxRequestBytes,
		BcryptCost: 10, MaxConcurrentStreams: 1 << 20, StrictReconfigCheck: true, BootstrapTimeout: 10 * time.Second,
		WarningApplyDuration: time.Second, WarningUnaryRequestDuration: 3 * time.Second,
		WatchProgressNotifyInterval: 10 * time.Minute, DowngradeCheckTime: time.Minute,
		BootstrapDefragThresholdMegabytes: 64, LeaseCheckpointInterval: 0,
		ServerFeatureGate: features.NewDefaultServerFeatureGate(memberName, log),
		Logger:            log,
	}, nil
}

// logger lets etcd's warnings through, and turns its last words into an error: the process, which has a log to close, goes on.
func (e *embedded) logger(l *zap.Logger) *zap.Logger {
	return l.Named("etcd").WithOptions(
		zap.WithFatalHook(lastWords{e}), zap.WithPanicHook(lastWords{e}), zap.WithCaller(false),
		zap.WrapCore(func(c zapcore.Core) zapcore.Core {
			return quiet{zapcore.NewSamplerWithOptions(c, time.Minute, 3, 0)}
		}))
}

// lastWords ends the goroutine that reports what etcd cannot go on after.
type lastWords struct{ e *embedded }

// OnWrite is called once the entry was written.
func (w lastWords) OnWrite(ce *zapcore.CheckedEntry, fields []zapcore.Field) {
	err := errors.New(ce.Message)
	for _, f := range fields {
		if cause, ok := f.Interface.(error); ok && f.Type == zapcore.ErrorType {
			err = fmt.Errorf("%s: %w", ce.Message, cause)
		}
	}
	w.e.fail(fmt.Errorf("embedded etcd: %w", err))
	runtime.Goexit()
}

func (e *embedded) fail(err error) {
	e.once.Do(func() {
		e.reason = err
		close(e.failed)
	})
}

// quiet is a core that drops what etcd says in daily life.
type quiet struct{ zapcore.Core }

func (q quiet) Enabled(l zapcore.Level) bool { return l >= zapcore.WarnLevel && q.Core.Enabled(l) }

func (q quiet) With(f []zapcore.Field) zapcore.Core { return quiet{q.Core.With(f)} }

func (q quiet) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !q.Enabled(e.Level) || e.Level < zapcore.DPanicLevel && isHarmless(e) {
		return ce
	}
	return q.Core.Check(e, ce)
}

// isHarmless tells what a healthy member of one warns of: elections that it asks for too early, and versions that it finds out
// while it starts, or no more when it stops.
func isHarmless(e zapcore.Entry) bool {
	return strings.HasSuffix(e.LoggerName, ".raft") && e.Level == zapcore.WarnLevel ||
		strings.Contains(e.Message, "storage version") || strings.Contains(e.Message, "schema version") ||
		strings.Contains(e.Message, "cluster version")
}

// client makes a client that calls the server without a socket.
func (e *embedded) client() *clientv3.Client { return v3client.New(e.server) }

// renew renews a lease, for ttl seconds, and tells the store's revision.
func (e *embedded) renew(ctx context.Context, id clientv3.LeaseID) (ttl, rev int64, err error) {
	ttl, err = e.server.LeaseRenew(ctx, lease.LeaseID(id))
	if errors.Is(err, lease.ErrLeaseNotFound) {
		err = rpctypes.ErrLeaseNotFound
	}
	return ttl, e.server.KV().Rev(), err
}

// stop stops the server. One that failed may not be able to stop, and is left after a while.
func (e *embedded) stop() {
	if e.server == nil {
		return
	}
	done := make(chan struct{})
	go func() {
		e.server.HardStop()
		close(done)
	}()
	select {
	case <-e.failed:
	case <-done:
		return
	}
	select {
	case <-done:
	case <-time.After(stopGrace):
	}
}
