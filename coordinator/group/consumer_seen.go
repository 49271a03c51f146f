package group

// seen are the members of a consumer group, with the partitions that they may read.
func (g *Consumer) seen() []Member {
	var out []Member
	for _, x := range g.membersByAge() {
		m := Member{ID: *x.id, ClientID: x.clientID, Host: x.host}
		if x.instance != nil {
			m.Instance = *x.instance
		}
		for i := range x.assigned {
			name, ok := g.m.opts.Cluster.Name(x.assigned[i].Topic)
			if !ok {
				continue
			}
			for _, p := range x.assigned[i].Partitions {
				m.Reads = append(m.Reads, Reading{Topic: name, Partition: p})
			}
		}
		out = append(out, m)
	}
	return out
}
