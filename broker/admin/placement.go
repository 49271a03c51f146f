package admin

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/controller/meta"
)

// place spreads replicas round-robin over brokers: leaders go around from
// start, the other replicas follow behind, in other racks first, and shift by
// one each round so that not always the same broker follows the same leader.
func place(brokers []*meta.Broker, partitions, replicas, start int) ([][]int32, error) {
	const unable = "Unable to replicate the partition %d time(s): "
	n := len(brokers)
	switch {
	case n == 0:
		return nil, refuse(kerr.InvalidReplicationFactor, unable+"All brokers are currently fenced or cordoned.", replicas)
	case replicas > n:
		return nil, refuse(kerr.InvalidReplicationFactor,
			unable+"The target replication factor of %[1]d cannot be reached because only %d broker(s) are registered and take new partitions.", replicas, n)
	}
	ring := byRacks(brokers)
	assignments := make([][]int32, partitions)
	for p := range assignments {
		leader := (start + p) % n
		shift := 0
		if n > 1 {
			shift = (start + p) / n % (n - 1)
		}
		assignments[p] = pick(ring, leader, shift, replicas)
	}
	return assignments, nil
}

// pick takes replicas from the ring: its leader, then brokers of racks that are
// not there yet, then any.
func pick(ring []*meta.Broker, leader, shift, replicas int) []int32 {
	n := len(ring)
	ids := append(make([]int32, 0, replicas), ring[leader].ID)
	racks := map[string]bool{ring[leader].Rack: true}
	for _, other := range []bool{true, false} {
		for k := range n - 1 {
			if len(ids) == replicas {
				return ids
			}
			b := ring[(leader+1+(k+shift)%(n-1))%n]
			if slices.Contains(ids, b.ID) || other && (b.Rack == "" || racks[b.Rack]) {
				continue
			}
			ids = append(ids, b.ID)
			racks[b.Rack] = true
		}
	}
	return ids
}

// byRacks orders brokers so that neighbours stand in different racks as far as
// that is possible.
func byRacks(brokers []*meta.Broker) []*meta.Broker {
	racks := map[string][]*meta.Broker{}
	var names []string
	for _, b := range brokers {
		if _, ok := racks[b.Rack]; !ok {
			names = append(names, b.Rack)
		}
		racks[b.Rack] = append(racks[b.Rack], b)
	}
	slices.Sort(names)
	ring := make([]*meta.Broker, 0, len(brokers))
	for i := 0; len(ring) < len(brokers); i++ {
		for _, name := range names {
			if i < len(racks[name]) {
				ring = append(ring, racks[name][i])
			}
		}
	}
	return ring
}

// candidates are the brokers that take new partitions: alive, and their data
// directory not cordoned.
func candidates(image *meta.Image) []*meta.Broker {
	var list []*meta.Broker
	for _, b := range image.Brokers() {
		if !b.Fenced && !cordoned(image, b.ID) {
			list = append(list, b)
		}
	}
	return list
}

func cordoned(image *meta.Image, id int32) bool {
	r := meta.Resource{Type: meta.ResourceBroker, Name: formatID(id)}
	return image.Configs(r)["cordoned.log.dirs"] != ""
}

// checkReplicas judges replicas that a client has chosen itself. want is the
// number that the topic's other partitions have, 0 if there are none.
func checkReplicas(image *meta.Image, replicas []int32, want int) error {
	if len(replicas) == 0 {
		return refuse(kerr.InvalidReplicaAssignment, "The manual partition assignment includes an empty replica list.")
	}
	for i, id := range replicas {
		if slices.Contains(replicas[:i], id) {
			return refuse(kerr.InvalidReplicaAssignment, "The manual partition assignment includes the broker %d more than once.", id)
		}
		switch b := image.Broker(id); {
		case b == nil:
			return refuse(kerr.InvalidReplicaAssignment, "The manual partition assignment includes broker %d, but no such broker is registered.", id)
		case b.Fenced:
			return refuse(kerr.InvalidReplicaAssignment, "The manual partition assignment includes broker %d, which is fenced.", id)
		}
	}
	if want > 0 && len(replicas) != want {
		return refuse(kerr.InvalidReplicaAssignment,
			"The manual partition assignment includes a partition with %d replica(s), but this is not consistent with previous partitions, which have %d replica(s).", len(replicas), want)
	}
	return nil
}
