package metrics

// Source are functions that say what is, called once a scrape. One that is nil
// leaves its series out. They may take locks but do no I/O that can hang.
type Source struct {
	State      func() State
	Cluster    func() Cluster
	Partitions func() Partitions
	// EachPartition calls yield for partitions on this broker; series are shown for
	// those whose topic has series of its own.
	EachPartition func(yield func(PartitionLog) bool)
	Log           func() Log
	Sessions      func() Sessions
	Parked        func() Parked
	// Quotas are those of at most so many clients.
	Quotas func(most int) []Quota
}

// State is how the broker is.
type State struct {
	Ready  bool // Requests are served.
	Fenced bool // The lease may have run out: nothing is acknowledged.
	Phase  Phase
}

// Phase is Kafka's number for what a broker is doing.
type Phase int

// The phases that Kafka's BrokerState shows.
const (
	NotRunning   Phase = 0
	Starting     Phase = 1
	Recovery     Phase = 2
	Running      Phase = 3
	ShuttingDown Phase = 7
)

// Cluster is what the metadata says of all brokers together.
type Cluster struct {
	ActiveController          bool // This broker is the one that reacts.
	Brokers, FencedBrokers    int
	Topics, Partitions        int
	OfflinePartitions         int // Without a leader.
	PreferredLeaderImbalances int
}

// Partitions counts the replicas on this broker.
type Partitions struct {
	Replicas, Leaders                      int
	Offline                                int // Not served here: missing metadata or a damaged log.
	UnderReplicated, UnderMinISR, AtMinISR int
	Reassigning                            int
	ProducerIDs                            int
}

// PartitionLog is one partition of this broker.
type PartitionLog struct {
	Topic      string
	Partition  int32
	Bytes      int64
	Start, End int64 // Offsets: the first, and the next to be given.
}

// Log is the shared log on disk.
type Log struct {
	Bytes              int64 // Of all files of the log, spare ones included.
	Segments           int
	FreeBytes          uint64 // Of the filesystem.
	TotalBytes         uint64
	Poisoned           bool  // A write or sync failed: the broker is about to exit.
	Full               bool  // Produce is refused until there is room.
	QuarantinedOffsets int64 // Offsets that answer KAFKA_STORAGE_ERROR.
}

// Sessions are the incremental fetch sessions.
type Sessions struct {
	Sessions, Partitions int
}

// Parked are the requests that wait.
type Parked struct {
	Produces, Fetches int
}
