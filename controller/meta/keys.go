package meta

import (
	"fmt"
	"strconv"
	"strings"
)

// ChunkPartitions is how many partitions share one value. Never change it: it is part of the layout.
const ChunkPartitions = 128

// MaxTopicName is the longest legal topic name.
const MaxTopicName = 249

const layoutVersion = 1

const (
	keyCluster     = "cluster"
	dirTopics      = "1/topics/"
	dirParts       = "1/parts/"
	dirConfigs     = "1/configs/"
	dirQuotas      = "1/quotas/"
	dirBrokers     = "1/brokers/"
	dirLive        = "1/live/"
	dirOpenings    = "1/openings/"
	dirDeleted     = "1/deleted/"
	keyProducerIDs = "1/producer-ids"
	dirFeatures    = "1/features/"
)

// Keys makes the keys of one cluster.
type Keys struct {
	Prefix string // ends with "/"
}

// Cluster is the key of the cluster's identity.
func (k Keys) Cluster() string { return k.Prefix + keyCluster }

// Topic is the key of a topic. Names that collide have the same key.
func (k Keys) Topic(name string) string { return k.Prefix + dirTopics + Fold(name) }

// Parts is the prefix of all partition states of a topic.
func (k Keys) Parts(id TopicID) string { return k.Prefix + dirParts + FormatID(id) + "/" }

// Chunk is the key of the states of the partitions from chunk*ChunkPartitions on.
func (k Keys) Chunk(id TopicID, chunk int) string {
	return fmt.Sprintf("%s%06x", k.Parts(id), chunk)
}

// TopicConfigs is the key of a topic's configs.
func (k Keys) TopicConfigs(id TopicID) string {
	return k.Prefix + dirConfigs + "2/" + FormatID(id)
}

// Configs is the key of the configs of anything but a topic.
func (k Keys) Configs(r Resource) string {
	return k.Prefix + dirConfigs + strconv.Itoa(int(r.Type)) + "/" + r.Name
}

// Quotas is the key of an entity's quotas.
func (k Keys) Quotas(e QuotaEntity) string { return k.Prefix + dirQuotas + e.String() }

// Broker is the key of a registration.
func (k Keys) Broker(id int32) string { return k.Prefix + dirBrokers + formatNode(id) }

// Live is the leased key of a broker.
func (k Keys) Live(id int32) string { return k.Prefix + dirLive + formatNode(id) }

// Openings is the key of a broker's count of openings.
func (k Keys) Openings(id int32) string { return k.Prefix + dirOpenings + formatNode(id) }

// Deleted is the key of a topic's tombstone.
func (k Keys) Deleted(id TopicID) string { return k.Prefix + dirDeleted + FormatID(id) }

// ProducerIDs is the key of the next free producer id.
func (k Keys) ProducerIDs() string { return k.Prefix + keyProducerIDs }

// Feature is the key of a finalized feature.
func (k Keys) Feature(name string) string { return k.Prefix + dirFeatures + name }

func formatNode(id int32) string { return fmt.Sprintf("%010d", id) }

// Fold maps names that collide to one: metric names cannot tell '.' from '_'.
func Fold(name string) string { return strings.ReplaceAll(name, ".", "_") }

// LegalTopicName tells whether a name can be a topic's.
func LegalTopicName(name string) bool {
	if name == "" || name == "." || name == ".." || len(name) > MaxTopicName {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// keyKind says what a key, its prefix taken off, is about.
type keyKind uint8

const (
	kindUnknown keyKind = iota
	kindCluster
	kindTopic
	kindChunk
	kindTopicConfigs
	kindConfigs
	kindQuotas
	kindBroker
	kindLive
	kindOpenings
	kindDeleted
	kindProducerIDs
	kindFeature
)

// parsedKey is a key taken apart.
type parsedKey struct {
	kind     keyKind
	name     string // folded topic name, feature
	id       TopicID
	chunk    int
	node     int32
	resource Resource
	entity   QuotaEntity
}

// parseKey takes a key without its prefix apart. What it does not know is kindUnknown: a later version may have put it there.
func parseKey(key string) parsedKey {
	switch key {
	case keyCluster:
		return parsedKey{kind: kindCluster}
	case keyProducerIDs:
		return parsedKey{kind: kindProducerIDs}
	}
	for _, d := range []struct {
		dir   string
		parse func(rest string) parsedKey
	}{
		{dirParts, parseChunkKey},
		{dirTopics, func(s string) parsedKey { return parsedKey{kind: kindTopic, name: s} }},
		{dirConfigs, parseConfigsKey},
		{dirQuotas, parseQuotasKey},
		{dirBrokers, func(s string) parsedKey { return parseNodeKey(kindBroker, s) }},
		{dirLive, func(s string) parsedKey { return parseNodeKey(kindLive, s) }},
		{dirOpenings, func(s string) parsedKey { return parseNodeKey(kindOpenings, s) }},
		{dirDeleted, parseDeletedKey},
		{dirFeatures, func(s string) parsedKey { return parsedKey{kind: kindFeature, name: s} }},
	} {
		if rest, ok := strings.CutPrefix(key, d.dir); ok {
			return d.parse(rest)
		}
	}
	return parsedKey{}
}

func parseChunkKey(s string) parsedKey {
	ids, hex, ok := strings.Cut(s, "/")
	if !ok || len(hex) != 6 {
		return parsedKey{}
	}
	id, ok := ParseID(ids)
	n, err := strconv.ParseUint(hex, 16, 24)
	if !ok || err != nil {
		return parsedKey{}
	}
	return parsedKey{kind: kindChunk, id: id, chunk: int(n)}
}

func parseConfigsKey(s string) parsedKey {
	t, name, ok := strings.Cut(s, "/")
	if !ok {
		return parsedKey{}
	}
	n, err := strconv.ParseInt(t, 10, 8)
	if err != nil {
		return parsedKey{}
	}
	if ResourceType(n) == ResourceTopic {
		id, ok := ParseID(name)
		if !ok {
			return parsedKey{}
		}
		return parsedKey{kind: kindTopicConfigs, id: id}
	}
	return parsedKey{kind: kindConfigs, resource: Resource{Type: ResourceType(n), Name: name}}
}

func parseQuotasKey(s string) parsedKey {
	e, ok := parseQuotaEntity(s)
	if !ok {
		return parsedKey{}
	}
	return parsedKey{kind: kindQuotas, entity: e}
}

func parseNodeKey(kind keyKind, s string) parsedKey {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || len(s) != 10 || n < 0 {
		return parsedKey{}
	}
	return parsedKey{kind: kind, node: int32(n)}
}

func parseDeletedKey(s string) parsedKey {
	id, ok := ParseID(s)
	if !ok {
		return parsedKey{}
	}
	return parsedKey{kind: kindDeleted, id: id}
}
