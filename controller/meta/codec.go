package meta

import (
	"math"
	"slices"
	"sort"
)

const flagInternal = 1

const flagClean = 1

// TopicRecord is the value of a topic's own key.
type TopicRecord struct {
	Name       string
	ID         TopicID
	Internal   bool
	Partitions int
}

// EncodeCluster makes the value of the cluster's key.
func EncodeCluster(id string) []byte {
	w := newWriter(32)
	w.uv(layoutVersion)
	w.str(id)
	return w.b
}

// DecodeCluster reads what EncodeCluster makes.
func DecodeCluster(b []byte) (id string, err error) {
	r := newReader("the cluster's identity", b)
	layout := r.uv()
	if r.err == nil && layout > layoutVersion {
		return "", &TooNewError{What: "the key layout", Version: int(min(layout, math.MaxInt32)), Known: layoutVersion}
	}
	id = r.str()
	return id, r.end()
}

// EncodeTopic makes the value of a topic's key.
func EncodeTopic(t TopicRecord) []byte {
	w := newWriter(32 + len(t.Name))
	var flags byte
	if t.Internal {
		flags |= flagInternal
	}
	w.u8(flags)
	w.id(t.ID)
	w.uv(uint64(t.Partitions))
	w.str(t.Name)
	return w.b
}

// DecodeTopic reads what EncodeTopic makes.
func DecodeTopic(b []byte) (TopicRecord, error) {
	r := newReader("a topic", b)
	flags := r.u8()
	t := TopicRecord{ID: r.id(), Internal: flags&flagInternal != 0}
	t.Partitions = int(r.i32())
	t.Name = r.str()
	if flags&^flagInternal != 0 || t.Partitions > maxPartitions {
		r.fail()
	}
	return t, r.end()
}

// maxPartitions bounds what a topic record can make an image allocate.
const maxPartitions = 1 << 20

// EncodeConfigs makes the value of a set of configs.
func EncodeConfigs(configs map[string]string) []byte {
	keys := make([]string, 0, len(configs))
	size := 8
	for k, v := range configs {
		keys = append(keys, k)
		size += len(k) + len(v) + 4
	}
	sort.Strings(keys)
	w := newWriter(size)
	w.uv(uint64(len(keys)))
	for _, k := range keys {
		w.str(k)
		w.str(configs[k])
	}
	return w.b
}

// DecodeConfigs reads what EncodeConfigs makes; nil for an empty set.
func DecodeConfigs(b []byte) (map[string]string, error) {
	r := newReader("a set of configs", b)
	n := r.count(2)
	var configs map[string]string
	if n > 0 {
		configs = make(map[string]string, n)
	}
	for i, last := 0, ""; i < n && r.err == nil; i++ {
		k := r.str()
		if i > 0 && k <= last {
			r.fail()
			break
		}
		last = k
		configs[k] = r.str()
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return configs, nil
}

// EncodeBroker makes the value of a registration. Id, epoch and fencing are not in it.
func EncodeBroker(b *Broker) []byte {
	w := newWriter(128)
	var flags byte
	if b.CleanlyStopped {
		flags |= flagClean
	}
	w.u8(flags)
	w.id(b.Incarnation)
	w.str(b.Rack)
	w.uv(uint64(len(b.Listeners)))
	for _, l := range b.Listeners {
		w.str(l.Name)
		w.str(l.Host)
		w.uv(uint64(uint32(l.Port)))
		w.str(l.Protocol)
	}
	return w.b
}

// DecodeBroker reads what EncodeBroker makes.
func DecodeBroker(b []byte) (*Broker, error) {
	r := newReader("a broker's registration", b)
	flags := r.u8()
	out := &Broker{CleanlyStopped: flags&flagClean != 0, Incarnation: r.id(), Rack: r.str()}
	for range r.count(4) {
		out.Listeners = append(out.Listeners, Endpoint{Name: r.str(), Host: r.str(), Port: r.i32(), Protocol: r.str()})
	}
	if flags&^flagClean != 0 {
		r.fail()
	}
	return out, r.end()
}

// EncodeLive makes the value of a broker's leased key.
func EncodeLive(l Live) []byte {
	w := newWriter(32 + len(l.Owner))
	w.id(l.Incarnation)
	w.str(l.Owner)
	return w.b
}

// DecodeLive reads what EncodeLive makes.
func DecodeLive(b []byte) (Live, error) {
	r := newReader("a broker's lease", b)
	l := Live{Incarnation: r.id(), Owner: r.str()}
	return l, r.end()
}

// EncodeTombstone makes the value of a tombstone. The id is in its key.
func EncodeTombstone(t Tombstone) []byte {
	w := newWriter(16 + len(t.Name) + 2*len(t.Holders))
	w.str(t.Name)
	w.ids(t.Holders)
	return w.b
}

// DecodeTombstone reads what EncodeTombstone makes.
func DecodeTombstone(id TopicID, b []byte) (Tombstone, error) {
	r := newReader("a deleted topic", b)
	t := Tombstone{ID: id, Name: r.str(), Holders: r.ids()}
	return t, r.end()
}

// EncodeNumber makes the value of a single number: openings, the next producer id, a feature level.
func EncodeNumber(n int64) []byte {
	w := newWriter(11)
	w.uv(uint64(n))
	return w.b
}

// DecodeNumber reads what EncodeNumber makes; it must not be above limit.
func DecodeNumber(what string, b []byte, limit int64) (int64, error) {
	r := newReader(what, b)
	n := r.uv()
	if n > uint64(limit) {
		r.fail()
	}
	return int64(n), r.end()
}

const (
	flagReplicas = 1 << iota
	flagISR
	flagLeader
	flagAdding
	flagRemoving
	flagsKnown = 1<<iota - 1
)

// EncodeChunk makes the value of up to ChunkPartitions partitions.
func EncodeChunk(parts []Partition) []byte {
	w := newWriter(8 + 8*len(parts))
	w.uv(uint64(len(parts)))
	var last []int32
	for i := range parts {
		p := &parts[i]
		flags := chunkFlags(p, last, i == 0)
		w.u8(flags)
		w.sv(int64(p.base))
		w.uv(uint64(uint32(p.PartitionEpoch)))
		if flags&flagReplicas != 0 {
			w.ids(p.Replicas)
		}
		if flags&flagISR != 0 {
			w.ids(p.ISR)
		}
		if flags&flagLeader != 0 {
			w.sv(int64(p.Leader))
		}
		if flags&flagAdding != 0 {
			w.ids(p.Adding)
		}
		if flags&flagRemoving != 0 {
			w.ids(p.Removing)
		}
		last = p.Replicas
	}
	return w.b
}

func chunkFlags(p *Partition, last []int32, first bool) byte {
	var flags byte
	if first || !slices.Equal(p.Replicas, last) {
		flags |= flagReplicas
	}
	if !slices.Equal(p.ISR, p.Replicas) {
		flags |= flagISR
	}
	if len(p.Replicas) == 0 || p.Leader != p.Replicas[0] {
		flags |= flagLeader
	}
	if len(p.Adding) > 0 {
		flags |= flagAdding
	}
	if len(p.Removing) > 0 {
		flags |= flagRemoving
	}
	return flags
}

// DecodeChunk reads what EncodeChunk makes. Leader epochs are the base epochs until Image.Resolve, or an image, adds
// the leaders' openings.
func DecodeChunk(b []byte) ([]Partition, error) {
	r := newReader("a chunk of partitions", b)
	n := r.count(3)
	if n > ChunkPartitions {
		r.fail()
		n = 0
	}
	parts := make([]Partition, n)
	var last []int32
	for i := range parts {
		p := &parts[i]
		r.partition(p, last, i == 0)
		last = p.Replicas
		if r.err != nil {
			break
		}
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return parts, nil
}

// partition reads one partition; lists that are equal share memory, which is most of them.
func (r *reader) partition(p *Partition, last []int32, first bool) {
	flags := r.u8()
	if flags&^flagsKnown != 0 || first && flags&flagReplicas == 0 {
		r.fail()
		return
	}
	p.base = r.s32()
	p.LeaderEpoch = p.base
	p.PartitionEpoch = r.i32()
	p.Replicas = last
	if flags&flagReplicas != 0 {
		p.Replicas = r.ids()
	}
	p.ISR = p.Replicas
	if flags&flagISR != 0 {
		p.ISR = r.ids()
	}
	switch {
	case flags&flagLeader != 0:
		p.Leader = r.s32()
	case len(p.Replicas) > 0:
		p.Leader = p.Replicas[0]
	default:
		r.fail()
	}
	if p.Leader < -1 {
		r.fail()
	}
	if flags&flagAdding != 0 {
		p.Adding = r.ids()
	}
	if flags&flagRemoving != 0 {
		p.Removing = r.ids()
	}
}
