package config

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Mode says where a broker config may be changed while the broker runs.
type Mode uint8

const (
	// ReadOnly configs change with a restart only.
	ReadOnly Mode = iota
	// PerBroker configs may be set for one broker, not for all at once.
	PerBroker
	// ClusterWide configs may be set for one broker and for all.
	ClusterWide
)

// Def is what is known of one config.
type Def struct {
	Name       string
	Type       kmsg.ConfigType
	Default    string
	HasDefault bool // False when Kafka's default is null.
	Mode       Mode
	Sensitive  bool
	// Synonyms are the broker configs that a topic or group config falls back
	// on, or the other names of a broker config, most important first.
	Synonyms []string
	Doc      string
}

// Source is one layer of settings: a file, the environment or the overrides.
type Source struct {
	name    string
	entries map[string]string
}

// ParseFile reads a server.properties; name is used in messages only.
func ParseFile(name string, data []byte) (Source, error) { panic("skeleton") }

// ParseEnv picks the KAFKA_… variables out of os.Environ().
func ParseEnv(environ []string) Source { panic("skeleton") }

// ParseOverrides reads the k=v words of --override.
func ParseOverrides(words []string) (Source, error) { panic("skeleton") }

// Options are given to Load.
type Options struct {
	Sources []Source // The weakest first: file, environment, overrides.
	Lenient bool     // Ignore what is not known, as Kafka does.
}

// Static is what the broker was started with.
type Static struct{}

// Load checks all sources and merges them over the defaults.
func Load(o Options) (*Static, error) { panic("skeleton") }

// Notices are lines for the start-up log: ignored or adapted settings.
func (s *Static) Notices() []string { panic("skeleton") }

// IsSet tells whether a source named the setting.
func (s *Static) IsSet(name string) bool { panic("skeleton") }

// Int, Int64, Bool, Float, String, List and Millis return a broker config by
// name, the default when it was not set. They panic on a name that is no config.
func (s *Static) Int(name string) int { panic("skeleton") }

// Int64 is like Int.
func (s *Static) Int64(name string) int64 { panic("skeleton") }

// Bool is like Int.
func (s *Static) Bool(name string) bool { panic("skeleton") }

// Float is like Int.
func (s *Static) Float(name string) float64 { panic("skeleton") }

// String is like Int; null reads as "".
func (s *Static) String(name string) string { panic("skeleton") }

// List is like Int; elements are trimmed, empty means none.
func (s *Static) List(name string) []string { panic("skeleton") }

// Millis is like Int for a config in milliseconds.
func (s *Static) Millis(name string) time.Duration { panic("skeleton") }

// Listener is one socket to listen on, and the address to give to clients.
type Listener struct {
	Name           string // As configured, upper case.
	Protocol       string // PLAINTEXT for now.
	Host           string // "" listens on all interfaces.
	Port           int    // 0 lets the system choose.
	AdvertisedHost string
	AdvertisedPort int // 0 when Port is 0: the port that was chosen.
}

// Listeners returns the broker's listeners, without a controller's.
func (s *Static) Listeners() []Listener { panic("skeleton") }

// NodeID is node.id, or broker.id where only that was set; 1 by default.
func (s *Static) NodeID() int32 { panic("skeleton") }

// LogDir is the one data directory.
func (s *Static) LogDir() string { panic("skeleton") }

// Etcd says which etcd to use; no endpoints means the embedded one.
type Etcd struct {
	Endpoints                             []string
	Prefix, User, Password                string
	CAFile, CertFile, KeyFile, ServerName string
	TLS                                   bool // Any etcd.tls.* key was set or an endpoint is https.
}

// Etcd returns the settings of the metadata store.
func (s *Static) Etcd() Etcd { panic("skeleton") }

// Topic is the configuration of one topic, defaults filled in. It is immutable.
type Topic struct {
	MaxMessageBytes                           int
	RetentionMs, RetentionBytes               int64 // -1: no limit.
	SegmentMs, SegmentJitterMs                int64
	SegmentBytes                              int
	Delete, Compact                           bool   // cleanup.policy; both false keeps for ever.
	CompressionType                           string // producer, uncompressed, gzip, snappy, lz4, zstd.
	GzipLevel, Lz4Level, ZstdLevel            int
	LogAppendTime                             bool // message.timestamp.type.
	TimestampBeforeMaxMs, TimestampAfterMaxMs int64
	MinInsyncReplicas                         int
	UncleanLeaderElection                     bool
	DeleteRetentionMs                         int64
	MinCompactionLagMs, MaxCompactionLagMs    int64
	MinCleanableDirtyRatio                    float64
	FlushMessages, FlushMs                    int64
	FileDeleteDelayMs                         int64
	IndexIntervalBytes, SegmentIndexBytes     int
	Durability                                Durability
}

// Durability says what an acknowledged record survives.
type Durability uint8

const (
	// Fsync acknowledges after the sync that covers the record: it survives power loss.
	Fsync Durability = iota
	// Async acknowledges once the kernel has the bytes: it survives a killed process.
	Async
)

// Values are the broker configs that hot paths read: plain fields of an
// immutable snapshot, no look-up by name.
type Values struct {
	MessageMaxBytes                     int
	FetchMaxBytes                       int
	FetchSessionSlots                   int // max.incremental.fetch.session.cache.slots
	RequestMaxBytes                     int // socket.request.max.bytes
	NumPartitions                       int
	DefaultReplicationFactor            int
	AutoCreateTopics                    bool
	DeleteTopics                        bool
	RetentionCheck                      time.Duration
	ProducerIDExpiration                time.Duration
	ReplicaLagTimeMax                   time.Duration
	MaxConnections, MaxConnectionsPerIP int
	ConnectionIdle                      time.Duration
	Durability                          Durability
}

// Live is the configuration at this moment: Static below what was set while
// running for all brokers and for this one. Safe for concurrent use.
type Live struct{}

// NewLive starts with nothing but s.
func NewLive(s *Static) *Live { panic("skeleton") }

// Static returns what Live was made from.
func (l *Live) Static() *Static { panic("skeleton") }

// Apply installs the configs set for all brokers and those set for this one,
// then calls the hooks of what changed. REQUIRES: calls are serialised.
func (l *Live) Apply(cluster, own map[string]string) { panic("skeleton") }

// OnChange registers fn, called by Apply after any of names changed. It is
// meant for start-up: before the first Apply.
func (l *Live) OnChange(fn func(*Values), names ...string) { panic("skeleton") }

// Values returns the present snapshot of what hot paths need.
func (l *Live) Values() *Values { panic("skeleton") }

// Int, Int64, Bool, Float, String, List and Millis are Static's getters at this moment.
func (l *Live) Int(name string) int { panic("skeleton") }

// Int64 is like Int.
func (l *Live) Int64(name string) int64 { panic("skeleton") }

// Bool is like Int.
func (l *Live) Bool(name string) bool { panic("skeleton") }

// Float is like Int.
func (l *Live) Float(name string) float64 { panic("skeleton") }

// String is like Int.
func (l *Live) String(name string) string { panic("skeleton") }

// List is like Int.
func (l *Live) List(name string) []string { panic("skeleton") }

// Millis is like Int.
func (l *Live) Millis(name string) time.Duration { panic("skeleton") }

// Listeners are the listeners at this moment.
func (l *Live) Listeners() []Listener { panic("skeleton") }

// Topic fills a topic's own settings up with the broker's. The caller caches
// it, and asks again when the topic's or the broker's settings changed.
func (l *Live) Topic(overrides map[string]string) *Topic { panic("skeleton") }

// TopicGeneration changes whenever a broker config that topics fall back on has changed.
func (l *Live) TopicGeneration() uint64 { panic("skeleton") }
