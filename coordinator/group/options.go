package group

import (
	"time"
)

// Options are what the machines of all partitions share.
type Options struct {
	// Settings are the broker's at this moment.
	Settings func() Settings
	// Topics are the cluster's.
	Topics Topics
	// Consumer are the settings of a consumer group at this moment, its own ones
	// included. Cluster is what such groups know of topics.
	Consumer func(id string) *ConsumerSettings
	Cluster  Cluster
	// NewID makes the random part of a member id; nil makes UUIDs.
	NewID func() string
}

// Settings are the configurable parts of groups and offsets.
type Settings struct {
	// Of classic groups.
	InitialRebalanceDelay                time.Duration
	MinSessionTimeout, MaxSessionTimeout time.Duration
	MaxSize                              int
	// MaxBytes bounds what the members of a group say under all of their protocols,
	// and what is assigned to them; 0 is no bound.
	MaxBytes int
	// Of offsets.
	OffsetMetadataMax    int
	OffsetRetention      time.Duration
	OffsetRetentionCheck time.Duration
}

// Topics is what a machine asks of the cluster's metadata.
type Topics interface {
	// Deleted tells that the topic of that id was deleted, or that its name now
	// belongs to a topic of another id. A topic that is merely not there is not
	// deleted.
	Deleted(name string, id TopicID) bool
}

// TopicID is a topic's UUID, all zero where it is not known.
type TopicID = [16]byte

// Client is who has sent a request.
type Client struct {
	// ID is the client id, Host the address as Kafka shows it: "/127.0.0.1".
	ID, Host string
	// Version is that of the request.
	Version int16
}
