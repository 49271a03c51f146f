package quota

import (
	"net/netip"
	"strings"

	"github.com/mainstem/mainstem/controller/meta"
)

// Kind is what a quota bounds.
type Kind uint8

// The kinds of quotas that clients have.
const (
	Produce  Kind = iota // bytes of produce requests a second
	Fetch                // bytes of fetch answers a second
	Request              // percent of one processor that requests take
	Mutation             // partitions created or deleted a second
	kinds
)

// Keys of the quotas, as they are stored and asked for.
const (
	ProducerByteRate       = "producer_byte_rate"
	ConsumerByteRate       = "consumer_byte_rate"
	RequestPercentage      = "request_percentage"
	ControllerMutationRate = "controller_mutation_rate"
	ConnectionCreationRate = "connection_creation_rate"
)

// keyOf are the keys by kind.
func keyOf(k Kind) string {
	return [kinds]string{ProducerByteRate, ConsumerByteRate, RequestPercentage, ControllerMutationRate}[k]
}

// Client is who sends a request.
type Client struct {
	User string // its principal's name
	ID   string // what it calls itself; empty if it gives no name
}

// ClientOf is the client of a principal, such as User:ANONYMOUS, that calls itself id.
func ClientOf(principal string, id *string) Client {
	c := Client{User: strings.TrimPrefix(principal, "User:")}
	if id != nil {
		c.ID = *id
	}
	return c
}

// limits are the bounds that the metadata has for clients. They are immutable.
type limits struct {
	tables [kinds]table
}

// table has the bounds of one kind.
type table struct {
	bounds map[meta.QuotaEntity]float64
	// used are the levels that some entity has, so that the others are not looked up.
	used [levels]bool
}

// The levels of entities, the first that counts first.
const (
	ofUserAndID = iota
	ofUserAnyID
	ofUser
	ofAnyUserAndID
	ofAnyUserAnyID
	ofAnyUser
	ofID
	ofAnyID
	levels
)

// levelOf is the level of an entity, -1 for addresses.
func levelOf(e meta.QuotaEntity) int {
	user, id := e.User, e.ClientID
	switch {
	case e.IP.Given || !user.Given && !id.Given:
		return -1
	case !user.Given:
		return pick(id.Default, ofAnyID, ofID)
	case !id.Given:
		return pick(user.Default, ofAnyUser, ofUser)
	case user.Default:
		return pick(id.Default, ofAnyUserAnyID, ofAnyUserAndID)
	}
	return pick(id.Default, ofUserAnyID, ofUserAndID)
}

func pick(which bool, yes, no int) int {
	if which {
		return yes
	}
	return no
}

// entityAt is the entity that would bound a client at a level.
func entityAt(level int, c Client) (e meta.QuotaEntity) {
	switch level {
	case ofUserAndID, ofUserAnyID, ofUser:
		e.User = meta.NamedQuota(c.User)
	case ofAnyUserAndID, ofAnyUserAnyID, ofAnyUser:
		e.User = meta.DefaultQuota()
	}
	switch level {
	case ofUserAndID, ofAnyUserAndID, ofID:
		e.ClientID = meta.NamedQuota(c.ID)
	case ofUserAnyID, ofAnyUserAnyID, ofAnyID:
		e.ClientID = meta.DefaultQuota()
	}
	return e
}

// find gives the bound of a client and the account that it is held to.
func (t *table) find(c Client) (bound float64, account Client, ok bool) {
	for level := range levels {
		whole := level == ofUser || level == ofAnyUser
		if !t.used[level] || c.ID == "" && !whole {
			continue
		}
		if bound, ok = t.bounds[entityAt(level, c)]; !ok {
			continue
		}
		account = c
		switch {
		case whole:
			account.ID = ""
		case level == ofID || level == ofAnyID:
			account.User = ""
		}
		return bound, account, true
	}
	return 0, Client{}, false
}

// limitsOf reads the bounds of clients off an image; nil if there are none.
func limitsOf(img *meta.Image) *limits {
	var l *limits
	for entity, quotas := range img.EachQuota() {
		level := levelOf(entity)
		if level < 0 {
			continue
		}
		for k := range kinds {
			bound, ok := quotas[keyOf(k)]
			if !ok || bound <= 0 {
				continue
			}
			if l == nil {
				l = new(limits)
			}
			t := &l.tables[k]
			if t.bounds == nil {
				t.bounds = map[meta.QuotaEntity]float64{}
			}
			t.bounds[entity] = bound
			t.used[level] = true
		}
	}
	return l
}

// addressLimits are the bounds on connections by address. They are immutable.
type addressLimits struct {
	named map[netip.Addr]float64
	other float64 // of all others; 0: none
}

// addressLimitsOf reads them off an image; nil if there are none.
func addressLimitsOf(img *meta.Image) *addressLimits {
	var l *addressLimits
	for entity, quotas := range img.EachQuota() {
		bound, ok := quotas[ConnectionCreationRate]
		if !entity.IP.Given || !ok || bound <= 0 {
			continue
		}
		if l == nil {
			l = &addressLimits{named: map[netip.Addr]float64{}}
		}
		if entity.IP.Default {
			l.other = bound
		} else if ip, err := ParseAddress(entity.IP.Name); err == nil {
			l.named[ip] = bound
		}
	}
	return l
}

// ParseAddress reads an address as the server sees it of its clients.
func ParseAddress(s string) (netip.Addr, error) {
	ip, err := netip.ParseAddr(s)
	return ip.WithZone("").Unmap(), err
}

// find gives the bound of an address.
func (l *addressLimits) find(ip netip.Addr) (bound float64, ok bool) {
	if bound, ok = l.named[ip]; ok {
		return bound, true
	}
	return l.other, l.other > 0
}
