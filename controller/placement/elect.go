package placement

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/controller/meta"
)

// Election says who may be elected.
type Election int8

// The elections, by Kafka's numbers.
const (
	Preferred Election = 0 // The first replica, if it is in sync.
	Unclean   Election = 1 // Any living replica when none in sync lives: records may be lost.
)

// Elect gives a partition the leader that an election calls for. The errors are
// kerr's: ElectionNotNeeded when it has one that will do,
// PreferredLeaderNotAvailable and EligibleLeadersNotAvailable when nobody can.
func Elect(image *meta.Image, p meta.Partition, how Election) (meta.Partition, error) {
	led := alive(image, p.Leader)
	if led && (how == Unclean || p.Leader == p.Replicas[0]) {
		return p, kerr.ElectionNotNeeded
	}
	leader := successor(image, &p)
	if leader < 0 && how == Unclean {
		if leader = firstAlive(image, p.Replicas); leader >= 0 {
			p.ISR = []int32{leader}
		}
	}
	switch {
	case leader >= 0 && leader != p.Leader:
		p = image.Led(p, leader)
		p.PartitionEpoch++
		return complete(image, p), nil
	case how == Unclean:
		return p, kerr.EligibleLeadersNotAvailable
	}
	return p, kerr.PreferredLeaderNotAvailable
}

// successor is who should lead: the first replica if it can, else the present
// leader if it can, else the next one that can; -1 when nobody can.
func successor(image *meta.Image, p *meta.Partition) int32 {
	can := func(id int32) bool { return slices.Contains(p.ISR, id) && alive(image, id) }
	if first := p.Replicas[0]; !can(first) && can(p.Leader) {
		return p.Leader
	}
	for _, id := range p.Replicas {
		if can(id) {
			return id
		}
	}
	return -1
}

func firstAlive(image *meta.Image, ids []int32) int32 {
	for _, id := range ids {
		if alive(image, id) {
			return id
		}
	}
	return -1
}

func alive(image *meta.Image, id int32) bool {
	b := image.Broker(id)
	return b != nil && !b.Fenced
}
