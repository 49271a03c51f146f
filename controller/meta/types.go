package meta

// TopicID is the identity of a topic. A topic that is deleted and made again under the same name has another one.
type TopicID = [16]byte

// Topic is one topic with all its partitions. A value handed out by an Image never changes.
type Topic struct {
	Name       string
	ID         TopicID
	Internal   bool
	Partitions []Partition
	Configs    map[string]string // set on the topic itself; nil when there are none; read only
}

// Partition is the state of one partition as the whole cluster sees it.
type Partition struct {
	Replicas, ISR    []int32
	Adding, Removing []int32
	Leader           int32 // -1: none
	LeaderEpoch      int32
	PartitionEpoch   int32
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

// Delta is what differs between an image and the one before it.
type Delta struct {
	TopicsCreated  []*Topic
	TopicsChanged  []*Topic // partitions, epochs, replicas or configs
	TopicsDeleted  []*Topic // deleted for certain: their data may go
	TopicsMissing  []*Topic // gone from etcd without a deletion: not served, data kept
	BrokersChanged []int32  // registered, fenced, unfenced or unregistered
	ConfigsChanged []Resource
}
