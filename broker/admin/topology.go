package admin

import (
	"math/rand/v2"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/controller/meta"
)

// topology is the cluster as the clients of one listener see it.
type topology struct {
	image    *meta.Image
	listener string
	// living are the brokers that are not fenced and have the listener, by id.
	living []*meta.Broker
	ends   map[int32]meta.Endpoint // Of living.
}

func newTopology(image *meta.Image, listener string) *topology {
	t := &topology{image: image, listener: listener, ends: map[int32]meta.Endpoint{}}
	for _, b := range image.Brokers() {
		if b.Fenced {
			continue
		}
		if e, ok := t.endpoint(b); ok {
			t.living = append(t.living, b)
			t.ends[b.ID] = e
		}
	}
	return t
}

func (t *topology) endpoint(b *meta.Broker) (meta.Endpoint, bool) {
	for _, e := range b.Listeners {
		if e.Name == t.listener {
			return e, true
		}
	}
	return meta.Endpoint{}, false
}

// reachable tells whether clients of the listener can talk to the broker.
func (t *topology) reachable(id int32) bool { _, ok := t.ends[id]; return ok }

// leader is who leads a partition for the listener's clients, -1 with the
// error code that says why when nobody does.
func (t *topology) leader(p *meta.Partition) (leader int32, problem int16) {
	if t.reachable(p.Leader) {
		return p.Leader, 0
	}
	if b := t.image.Broker(p.Leader); b != nil && !b.Fenced {
		return -1, kerr.ListenerNotFound.Code
	}
	return -1, kerr.LeaderNotAvailable.Code
}

// offline are the replicas that the listener's clients cannot reach.
func (t *topology) offline(p *meta.Partition) []int32 {
	var ids []int32
	for _, id := range p.Replicas {
		if !t.reachable(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// controller is the broker that is called the controller: any living one, since
// each accepts every request. -1 when none lives.
func (t *topology) controller() int32 {
	if len(t.living) == 0 {
		return -1
	}
	return t.living[rand.IntN(len(t.living))].ID
}

// rackOf is nil for a broker without a rack.
func rackOf(b *meta.Broker) *string {
	if b.Rack == "" {
		return nil
	}
	return &b.Rack
}

// Operations that everybody may do as long as there is no access control, as
// bits by Kafka's numbers of operations.
const (
	// topicOperations are read, write, create, delete, alter, describe and
	// describe and alter configs.
	topicOperations = 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<8 | 1<<10 | 1<<11
	// clusterOperations are create, alter, describe, cluster action, describe
	// and alter configs, idempotent write.
	clusterOperations = 1<<5 | 1<<7 | 1<<8 | 1<<9 | 1<<10 | 1<<11 | 1<<12
	// notAsked stands where operations were not asked for.
	notAsked = -1 << 31
)

// Internal topics, and the log that Kafka keeps its metadata in.
const (
	consumerOffsets  = "__consumer_offsets"
	transactionState = "__transaction_state"
	shareGroupState  = "__share_group_state"
	clusterMetadata  = "__cluster_metadata"
)

func isInternal(name string) bool {
	return name == consumerOffsets || name == transactionState || name == shareGroupState
}
