package meta

// Led is the state of a partition after this one, led by leader (-1: by
// nobody), under the next leader epoch. Who writes it makes the transaction
// depend on the openings of both leaders.
func (i *Image) Led(p Partition, leader int32) Partition {
	epoch := i.epochOf(&p) + 1
	p.Leader, p.base = leader, epoch
	if leader >= 0 {
		p.base -= i.openings[leader]
	}
	p.LeaderEpoch = epoch
	return p
}

// Same tells whether two states of a partition are one and the same write, though
// the leader may have opened its log between them.
func (p *Partition) Same(o *Partition) bool {
	a, b := *p, *o
	a.LeaderEpoch, b.LeaderEpoch = 0, 0
	return a.equal(&b)
}
