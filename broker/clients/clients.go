package clients

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/mainstem/mainstem/coordinator/group"
	"github.com/mainstem/mainstem/protocol"
)

// Client is an application that is connected, or that is a member of a group.
type Client struct {
	ClientID    string       `json:"client_id"`
	Host        string       `json:"host"`
	Software    string       `json:"software,omitempty"`
	Version     string       `json:"software_version,omitempty"`
	Principal   string       `json:"principal,omitempty"`
	Listeners   []string     `json:"listeners"`
	Connections int          `json:"connections"`
	Since       *time.Time   `json:"connected_since,omitempty"`
	Groups      []Membership `json:"groups"`
}

// Membership is a client's membership in a group.
type Membership struct {
	Group      string    `json:"group"`
	Type       string    `json:"type"`
	State      string    `json:"state"`
	MemberID   string    `json:"member_id"`
	InstanceID string    `json:"instance_id,omitempty"`
	Partitions []Reading `json:"partitions"`
	// Lag is the sum over the partitions whose lag is known.
	Lag int64 `json:"lag"`
}

// Reading is a partition that a client reads as a member of a group.
type Reading struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Committed *int64 `json:"committed_offset"`
	End       *int64 `json:"end_offset"`
	Lag       *int64 `json:"lag"`
}

// Options say where the view comes from.
type Options struct {
	// Members tells of the members of groups.
	Members func(ctx context.Context) ([]group.Member, error)
	// End is the end of what readers of a partition may see, false if that is not
	// known here.
	End func(topic string, partition int32) (int64, bool)
}

// Registry knows the connections. Its methods are safe for concurrent use.
type Registry struct {
	mu    sync.Mutex
	conns map[*protocol.ConnInfo]time.Time // and since when; guarded by mu
}

// New returns a registry without connections.
func New() *Registry { return &Registry{conns: make(map[*protocol.ConnInfo]time.Time)} }

// Opened notes a connection.
func (r *Registry) Opened(c *protocol.ConnInfo) {
	r.mu.Lock()
	r.conns[c] = time.Now()
	r.mu.Unlock()
}

// Closed forgets a connection.
func (r *Registry) Closed(c *protocol.ConnInfo) {
	r.mu.Lock()
	delete(r.conns, c)
	r.mu.Unlock()
}

// who names a client.
type who struct{ id, host string }

// List puts the view together, by client id and host.
func (r *Registry) List(ctx context.Context, o Options) ([]Client, error) {
	byWho := make(map[who]*Client)
	get := func(w who) *Client {
		c := byWho[w]
		if c == nil {
			c = &Client{ClientID: w.id, Host: w.host, Listeners: []string{}, Groups: []Membership{}}
			byWho[w] = c
		}
		return c
	}
	r.connected(get)
	members, err := o.Members(ctx)
	if err != nil {
		return nil, fmt.Errorf("list members of groups: %w", err)
	}
	for i := range members {
		m := &members[i]
		c := get(who{m.ClientID, trimSlash(m.Host)})
		c.Groups = append(c.Groups, membership(m, o.End))
	}
	list := make([]Client, 0, len(byWho))
	for _, c := range byWho {
		slices.Sort(c.Listeners)
		list = append(list, *c)
	}
	slices.SortFunc(list, func(a, b Client) int {
		return cmp.Or(cmp.Compare(a.ClientID, b.ClientID), cmp.Compare(a.Host, b.Host))
	})
	return list, nil
}

// connected adds what the connections tell.
func (r *Registry) connected(get func(who) *Client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for conn, since := range r.conns {
		host, _, err := net.SplitHostPort(conn.Remote.String())
		if err != nil {
			host = conn.Remote.String()
		}
		c := get(who{conn.ClientID(), host})
		c.Connections++
		c.Principal = conn.Principal
		if name, version := conn.Software(); name != "" {
			c.Software, c.Version = name, version
		}
		if !slices.Contains(c.Listeners, conn.Listener) {
			c.Listeners = append(c.Listeners, conn.Listener)
		}
		if c.Since == nil || since.Before(*c.Since) {
			c.Since = &since
		}
	}
}

// membership is what is shown of a member.
func membership(m *group.Member, end func(string, int32) (int64, bool)) Membership {
	out := Membership{
		Group: m.Group, Type: string(m.Kind), State: m.State, MemberID: m.ID, InstanceID: m.Instance, Partitions: []Reading{},
	}
	for _, r := range m.Reads {
		row := Reading{Topic: r.Topic, Partition: r.Partition}
		if r.Committed >= 0 {
			row.Committed = &r.Committed
		}
		if n, ok := end(r.Topic, r.Partition); ok {
			row.End = &n
		}
		if row.Committed != nil && row.End != nil {
			lag := max(0, *row.End-*row.Committed)
			row.Lag = &lag
			out.Lag += lag
		}
		out.Partitions = append(out.Partitions, row)
	}
	return out
}

// trimSlash takes away the slash that Kafka puts in front of addresses. Addresses of
// IPv6 are spelled out there.
func trimSlash(host string) string {
	if len(host) > 0 && host[0] == '/' {
		host = host[1:]
	}
	if ip := net.ParseIP(host); ip != nil {
		return ip.String()
	}
	return host
}
