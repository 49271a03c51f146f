package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/mainstem/mainstem/broker/admin"
	"github.com/mainstem/mainstem/broker/config"
	"github.com/mainstem/mainstem/broker/http"
	"github.com/mainstem/mainstem/broker/metrics"
	"github.com/mainstem/mainstem/broker/records"
	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/controller"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/log/vfs"
	"github.com/mainstem/mainstem/protocol"
)

// lock takes the data directory for this process.
func (b *Broker) lock(context.Context) error {
	dir := b.config.LogDir()
	if err := vfs.OS().MkdirAll(dir); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	lock, err := vfs.OS().Lock(filepath.Join(dir, "lock"))
	if err != nil {
		return fmt.Errorf("data directory %s: %w", dir, err)
	}
	b.onClose(func(context.Context) error { return lock.Close() })
	return nil
}

// openHTTP answers health checks from the beginning: live, and not yet ready.
func (b *Broker) openHTTP(context.Context) error {
	address := b.config.String("mainstem.http.listener")
	if address == "" {
		return nil
	}
	server, err := http.Listen(http.Options{
		Listener: address,
		MayMove:  !b.config.IsSet("mainstem.http.listener"),
		Live:     b.alive,
		Ready:    b.ready,
		Gatherer: b.metrics.Gatherer(),
		Clients:  b.listClients,
		Level:    b.level,
		Logger:   b.logger,
	})
	if err != nil {
		return err
	}
	b.http = server
	if server.Moved() {
		b.logger.Info("HTTP address is in use, another was taken",
			zap.String("configured", address), zap.Stringer("address", server.Addr()))
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(); err != nil {
			b.logger.Error("HTTP listener ended", zap.Error(err))
		}
	})
	b.onClose(func(ctx context.Context) error {
		err := server.Close(ctx)
		serving.Wait()
		return err
	})
	return nil
}

// openMetadata connects to etcd, checked against the identity of the log.
func (b *Broker) openMetadata(ctx context.Context) error {
	identity, found, err := log.ReadIdentity(vfs.OS(), LogDir(b.config.LogDir()))
	if err != nil {
		return fmt.Errorf("read the log's identity: %w", logError(err))
	}
	etcd := b.config.Etcd()
	o := controller.Options{
		Dir:           b.config.LogDir(),
		Endpoints:     etcd.Endpoints,
		User:          etcd.User,
		Password:      etcd.Password,
		Prefix:        etcd.Prefix,
		NodeID:        b.config.NodeID(),
		LeaseTTL:      b.config.SessionTimeout(),
		WantClusterID: identity.ClusterID,
		HasData:       found,
		Logger:        b.logger.Named("metadata"),
	}
	if b.config.Bool(config.UnstableFeatures) {
		o.Levels = map[string]int16{meta.MetadataVersion: meta.UnstableMetadataVersion}
	}
	if etcd.TLS {
		o.TLS = &controller.TLS{CAFile: etcd.CAFile, CertFile: etcd.CertFile, KeyFile: etcd.KeyFile, ServerName: etcd.ServerName}
	}
	if b.metadata, err = controller.Open(ctx, o); err != nil {
		return metadataError(err)
	}
	b.onClose(func(ctx context.Context) error { return b.metadata.Close(ctx) })
	return nil
}

// openLog recovers the shared log.
func (b *Broker) openLog(context.Context) (err error) {
	b.phase.Store(int32(metrics.Recovery))
	began := time.Now()
	b.store, err = log.Open(log.Options{
		FS:             vfs.OS(),
		Dir:            LogDir(b.config.LogDir()),
		ClusterID:      b.metadata.ClusterID(),
		NodeID:         b.config.NodeID(),
		SegmentBytes:   b.config.Int64("mainstem.commitlog.segment.bytes"),
		ProducerExpiry: func() time.Duration { return b.live.Values().ProducerIDExpiration },
		Events:         b.logEvents(),
	})
	if err != nil {
		return fmt.Errorf("open the log: %w", logError(err))
	}
	b.onClose(func(context.Context) error { return b.store.Close() })
	stats := b.store.Stats()
	b.logger.Info("log opened", zap.Int("partitions", stats.Partitions), zap.Int64("bytes", stats.LiveBytes),
		zap.Bool("after_clean_stop", b.store.CleanStart()), zap.Duration("took", time.Since(began)))
	return nil
}

func (b *Broker) openPartitions(context.Context) error {
	b.replicas = replica.NewSet(replica.Options{
		Store: b.store, NodeID: b.config.NodeID(), Live: b.live,
		Fenced: b.metadata.Fenced, Metrics: b.metrics, Events: b.replicaEvents(),
	})
	b.records = records.New(records.Options{
		Replicas: b.replicas, Live: b.live, NodeID: b.config.NodeID(),
		Enlist: b.enlist, Quotas: b.quotas, Metrics: b.metrics, Logger: b.logger,
	})
	dir, err := filepath.Abs(b.config.LogDir())
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	b.admin = admin.New(admin.Options{
		Controller: b.metadata, Live: b.live, NodeID: b.config.NodeID(), Logger: b.logger, LogLevel: b.level,
		Quotas: b.quotas, LogDir: dir, Size: admin.SizesOf(b.replicas),
		Space: func() (free, total uint64) {
			free, total, _ = b.store.Space()
			return free, total
		},
	})
	b.onClose(func(context.Context) error {
		b.admin.Close()
		return nil
	})
	b.metrics.SetSource(b.source())
	return nil
}

// openListeners takes the addresses; clients that come now wait in the queue.
func (b *Broker) openListeners(context.Context) (err error) {
	var listeners []protocol.Listener
	for _, l := range b.config.Listeners() {
		listeners = append(listeners, protocol.Listener{Name: l.Name, Host: l.Host, Port: l.Port, Protocol: l.Protocol})
	}
	b.server, err = protocol.Listen(protocol.Options{
		Listeners:       listeners,
		APIs:            b.apis(),
		Features:        b.features,
		Limits:          b.limits(),
		MaxRequestBytes: b.config.Int("socket.request.max.bytes"),
		MaxTotalBytes:   max(b.config.Int("queued.max.request.bytes"), 0),
		SendBuffer:      b.explicit("socket.send.buffer.bytes"),
		ReceiveBuffer:   b.explicit("socket.receive.buffer.bytes"),
		Backlog:         b.explicit("socket.listen.backlog.size"),
		Crowded:         b.records.Crowded,
		Quotas:          b.clientQuotas(),
		Events:          b.serverEvents(),
	})
	if err != nil {
		return err
	}
	b.live.OnChange(b.limitsChanged, "max.connections", "max.connections.per.ip", "max.connections.per.ip.overrides",
		"max.connection.creation.rate")
	b.live.OnChange(func(v *config.Values) { b.metrics.SetMaxTopics(v.MetricsTopicLimit) }, "mainstem.metrics.topic.limit")
	b.onClose(func(ctx context.Context) error { return b.server.Close(ctx) })
	return nil
}

// explicit is a setting that somebody chose; else the kernel knows better.
func (b *Broker) explicit(name string) int {
	if !b.config.IsSet(name) {
		return 0
	}
	return max(b.config.Int(name), 0)
}

// alone refuses to be the second living broker of a cluster: there is no
// replication yet, so a topic with replicas could not be served as it promises.
func (b *Broker) alone() error {
	for _, other := range b.metadata.Image().Brokers() {
		if other.ID != b.config.NodeID() && !other.Fenced {
			return kind{ErrMetadata, fmt.Errorf("metadata: broker %d is alive in this cluster, and this version runs one broker a cluster: "+
				"give this one an etcd.prefix of its own, or no etcd.endpoints", other.ID)}
		}
	}
	return nil
}

// join registers the broker under its lease, begins new leader epochs, and takes
// the metadata in: from then on this broker may lead.
func (b *Broker) join(ctx context.Context) error {
	registration := meta.Broker{Rack: b.config.String("broker.rack"), CleanlyStopped: b.store.CleanStart()}
	for _, l := range b.config.Listeners() {
		port := l.AdvertisedPort
		if port == 0 {
			port = b.server.Addrs()[l.Name].(*net.TCPAddr).Port
		}
		registration.Listeners = append(registration.Listeners,
			meta.Endpoint{Name: l.Name, Host: l.AdvertisedHost, Port: int32(port), Protocol: l.Protocol})
	}
	if err := b.metadata.Register(ctx, registration); err != nil {
		return metadataError(err)
	}
	if err := b.alone(); err != nil {
		return err
	}
	lag := replica.EpochLag(b.store, b.metadata.Image(), b.config.NodeID())
	if err := b.metadata.RaiseEpochs(ctx, lag); err != nil {
		return metadataError(err)
	}
	b.metadata.OnFenceChange(b.fenceChanged)
	b.metadata.Subscribe(b.apply)
	if !b.metadata.Fenced() {
		return nil
	}
	return kind{ErrMetadata, errors.New("metadata: the lease ran out during the start; start again")}
}
