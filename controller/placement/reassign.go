package placement

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/controller/meta"
)

// Reassign starts to move a partition to other replicas, in the place of a move
// that is under way, and ends it at once where it can. target has been judged.
func Reassign(image *meta.Image, p meta.Partition, target []int32) meta.Partition {
	next := p
	next.Adding = without(target, without(p.Replicas, p.Adding)) // What was being added still is.
	next.Removing = without(p.Replicas, target)
	next.Replicas = slices.Concat(target, next.Removing)
	next = settled(image, next)
	if next.Same(&p) {
		return p
	}
	next.PartitionEpoch++
	return next
}

// Revert ends a move that is under way: the partition has the replicas that it
// had. kerr.NoReassignmentInProgress when there is none. lossy tells that no
// replica that stays is in sync, so that records may be lost by it.
func Revert(image *meta.Image, p meta.Partition) (next meta.Partition, lossy bool, err error) {
	if !Moving(&p) {
		return p, false, kerr.NoReassignmentInProgress
	}
	next = p
	next.Adding, next.Removing = nil, nil
	next.Replicas, next.ISR = without(p.Replicas, p.Adding), without(p.ISR, p.Adding)
	if len(next.Replicas) == 0 {
		return p, false, kerr.InvalidReplicaAssignment
	}
	if lossy = len(next.ISR) == 0; lossy {
		next.ISR = next.Replicas[:1]
	}
	next = released(image, p, next)
	next.PartitionEpoch++
	return next, lossy, nil
}

// Moving tells whether a partition is being moved.
func Moving(p *meta.Partition) bool { return len(p.Adding)+len(p.Removing) > 0 }

// Size is how many replicas a partition has, or will have when it has been moved.
func Size(p *meta.Partition) int { return len(p.Replicas) - len(p.Removing) }

// complete ends a move if all that are added are in sync.
func complete(image *meta.Image, p meta.Partition) meta.Partition {
	if !Moving(&p) {
		return p
	}
	return settled(image, p)
}

// settled is a partition whose move is ended if it can be.
func settled(image *meta.Image, p meta.Partition) meta.Partition {
	if !Moving(&p) {
		return p
	}
	stay := without(p.ISR, p.Removing)
	sure := stay
	if firstAlive(image, p.ISR) >= 0 { // Else the partition is offline, and nobody's place is better than another's.
		sure = slices.DeleteFunc(slices.Clone(stay), func(id int32) bool { return !alive(image, id) })
	}
	if len(sure) == 0 || len(without(p.Adding, sure)) > 0 {
		return p
	}
	next := p
	next.Adding, next.Removing = nil, nil
	next.Replicas, next.ISR = without(p.Replicas, p.Removing), stay
	return released(image, p, next)
}

// released gives a partition that has lost replicas a leader among those that
// stay, and in any case a new epoch, so that no lost one goes on.
func released(image *meta.Image, was, next meta.Partition) meta.Partition {
	if len(without(was.Replicas, next.Replicas)) == 0 {
		return next
	}
	leader := next.Leader
	if !slices.Contains(next.ISR, leader) || !alive(image, leader) {
		leader = successor(image, &next)
	}
	return image.Led(next, leader)
}

// without is ids but for those in others, in their order; nil when none is left.
func without(ids, others []int32) []int32 {
	var left []int32
	for _, id := range ids {
		if !slices.Contains(others, id) {
			left = append(left, id)
		}
	}
	return left
}
