package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/mainstem/mainstem/broker/admin"
	"github.com/mainstem/mainstem/broker/clients"
	"github.com/mainstem/mainstem/broker/config"
	"github.com/mainstem/mainstem/broker/groups"
	"github.com/mainstem/mainstem/broker/http"
	"github.com/mainstem/mainstem/broker/metrics"
	"github.com/mainstem/mainstem/broker/quota"
	"github.com/mainstem/mainstem/broker/records"
	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/broker/txns"
	"github.com/mainstem/mainstem/controller"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/protocol"
)

// Options are given to Open.
type Options struct {
	Config   *config.Static
	Logger   *zap.Logger
	LogLevel zap.AtomicLevel
	Version  string
}

// Broker is a running broker.
type Broker struct {
	config  *config.Static
	live    *config.Live
	logger  *zap.Logger
	level   zap.AtomicLevel
	metrics *metrics.Metrics

	http     *http.Server
	metadata *controller.Client
	store    *log.Store
	replicas *replica.Set
	records  *records.Handlers
	admin    *admin.Handlers
	groups   *groups.Handlers
	txns     *txns.Handlers
	clients  *clients.Registry
	quotas   *quota.Manager
	server   *protocol.Server

	phase   atomic.Int32 // metrics.Phase
	ended   chan error   // why the broker cannot go on, once
	stop    context.CancelFunc
	running sync.WaitGroup
	deleted chan struct{} // deletions wait to be acknowledged
	acks    deletions

	// offsetsTopic and transactionsTopic are the internal topics that are
	// coordinated; apply's own.
	offsetsTopic, transactionsTopic meta.TopicID
	// loads has room for as many journals as may be read at a time.
	loads chan struct{}

	// undo closes what is open, the last first.
	undo []func(context.Context) error
}

// LogDir is where the shared log lies in a data directory.
func LogDir(dataDir string) string { return filepath.Join(dataDir, "commitlog") }

// Open starts a broker and returns when it serves requests. ctx bounds the start
// only. The error says cause and, where there is one, remedy.
func Open(ctx context.Context, o Options) (*Broker, error) {
	b := &Broker{
		config:  o.Config,
		live:    config.NewLive(o.Config),
		logger:  o.Logger,
		level:   o.LogLevel,
		metrics: metrics.New(metrics.Options{Version: o.Version, MaxTopics: o.Config.Int("mainstem.metrics.topic.limit")}),
		clients: clients.New(),
		quotas:  newQuotas(o.Config),
		ended:   make(chan error, 1),
		deleted: make(chan struct{}, 1),
	}
	b.phase.Store(int32(metrics.Starting))
	for _, step := range []func(context.Context) error{
		b.lock, b.openHTTP, b.openMetadata, b.openLog, b.openPartitions, b.openCoordinators, b.openListeners, b.join, b.serve,
	} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, b.closeAll(context.Background()))
		}
	}
	return b, nil
}

// serve lets clients in: everything is there.
func (b *Broker) serve(context.Context) error {
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	b.running.Go(func() { b.upkeep(ctx) })
	b.running.Go(func() { b.watch(ctx) })
	b.onClose(func(context.Context) error {
		stop()
		b.running.Wait()
		return nil
	})
	b.server.Serve()
	b.phase.Store(int32(metrics.Running))
	return nil
}

// onClose adds a step to Close; later ones run first.
func (b *Broker) onClose(f func(context.Context) error) { b.undo = append(b.undo, f) }

func (b *Broker) closeAll(ctx context.Context) error {
	var errs []error
	for i := len(b.undo) - 1; i >= 0; i-- {
		errs = append(errs, b.undo[i](ctx))
	}
	b.undo = nil
	return errors.Join(errs...)
}

// Close stops the broker: it is not ready at once, takes no new connections,
// answers what was appended, ends parked fetches with what there is, and closes the
// log so that the next start scans nothing. When ctx ends first, connections are
// cut. It may be called once.
func (b *Broker) Close(ctx context.Context) error {
	b.phase.Store(int32(metrics.ShuttingDown))
	return b.closeAll(ctx)
}

// Done gives the reason once the broker cannot go on; Close must follow.
func (b *Broker) Done() <-chan error { return b.ended }

// Ready tells whether requests of clients are served and acknowledged.
func (b *Broker) Ready() bool { return b.ready() == nil }

// Live tells whether the process can still do its work.
func (b *Broker) Live() bool { return b.alive() == nil }

// Addrs are the addresses listened on, by listener.
func (b *Broker) Addrs() map[string]net.Addr { return b.server.Addrs() }

// HTTPAddr is the address of the HTTP listener, "" if there is none.
func (b *Broker) HTTPAddr() string {
	if b.http == nil {
		return ""
	}
	return b.http.Addr().String()
}

// Gatherer gives the broker's metrics.
func (b *Broker) Gatherer() prometheus.Gatherer { return b.metrics.Gatherer() }

func (b *Broker) ready() error {
	switch p := metrics.Phase(b.phase.Load()); {
	case p == metrics.Recovery:
		return errors.New("the log is being read")
	case p == metrics.ShuttingDown:
		return errors.New("the broker is stopping")
	case p != metrics.Running:
		return errors.New("the broker is starting")
	case b.metadata.Fenced():
		return errors.New("the lease in etcd has run out; nothing is acknowledged until it is renewed")
	}
	return b.alive()
}

func (b *Broker) alive() error {
	if metrics.Phase(b.phase.Load()) != metrics.Running {
		return nil
	}
	if err := b.store.Err(); err != nil {
		return err
	}
	return b.metadata.Err()
}

// watch ends the broker when a part of it cannot go on.
func (b *Broker) watch(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-b.store.Done():
		b.ended <- fmt.Errorf("log: %w", b.store.Err())
	case <-b.metadata.Done():
		b.ended <- metadataError(b.metadata.Err())
	}
}
