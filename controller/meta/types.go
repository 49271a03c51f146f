package meta

import "encoding/base64"

// TopicID is the identity of a topic. A topic that is deleted and made again under the same name has another one.
type TopicID = [16]byte

// FormatID writes an id as Kafka's tools show it: 22 characters of URL-safe base64.
func FormatID(id [16]byte) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// ParseID reads what FormatID writes.
func ParseID(s string) (id [16]byte, ok bool) {
	if len(s) != 22 {
		return id, false
	}
	n, err := base64.RawURLEncoding.Strict().Decode(id[:], []byte(s))
	return id, err == nil && n == len(id)
}

// Topic is one topic with all its partitions. A value handed out by an Image never changes.
type Topic struct {
	Name       string
	ID         TopicID
	Internal   bool
	Partitions []Partition
	Configs    map[string]string // set on the topic itself; nil when there are none; read only
}

// Partition is the state of one partition as the whole cluster sees it. Equal lists may share memory: read only.
type Partition struct {
	Replicas, ISR    []int32 // the first replica is the preferred leader
	Adding, Removing []int32 // of a reassignment under way
	Leader           int32   // -1: none
	LeaderEpoch      int32
	PartitionEpoch   int32

	base int32 // the base epoch; see the package doc
}

// NewPartition is the state of a partition that is being made: led by the first replica in isr, at leader epoch 0.
// An empty isr means all replicas.
func (i *Image) NewPartition(replicas, isr []int32) Partition {
	if len(isr) == 0 {
		isr = replicas
	}
	p := Partition{Replicas: replicas, ISR: isr, Leader: isr[0]}
	p.base = -i.openings[p.Leader]
	return p
}

// Endpoint is one advertised address of a broker.
type Endpoint struct {
	Name     string // the listener's name, e.g. "PLAINTEXT"
	Host     string
	Port     int32
	Protocol string // the security protocol
}

// Broker is a registration. It stays in the image when its lease has ended, with Fenced set, until the broker is
// unregistered: clients are shown unfenced brokers only.
type Broker struct {
	ID             int32
	Epoch          int64 // grows with every registration of this id; given by etcd
	Incarnation    [16]byte
	Rack           string
	Listeners      []Endpoint
	Fenced         bool
	CleanlyStopped bool // the broker's log was closed cleanly before this registration
}

// ResourceType says what a set of configs belongs to; the numbers are Kafka's.
type ResourceType = int8

// The resource types whose configs are stored. A broker logger's levels (8) are not.
const (
	ResourceTopic         ResourceType = 2
	ResourceBroker        ResourceType = 4
	ResourceClientMetrics ResourceType = 16
	ResourceGroup         ResourceType = 32
)

// Resource names a set of configs. A broker's name is its id in decimal; "" is the cluster-wide default.
type Resource struct {
	Type ResourceType
	Name string
}

// Tombstone says that a topic was deleted and which brokers may still hold data of it.
type Tombstone struct {
	ID      TopicID
	Name    string
	Holders []int32
}

// Live is who holds a node id now.
type Live struct {
	Incarnation [16]byte
	Owner       string // the place whose exclusive lock the process holds; "" = unknown
}
