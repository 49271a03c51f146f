package meta

import (
	"iter"
	"maps"
	"math"
	"net/url"
	"slices"
	"sort"
	"strings"

	"github.com/google/btree"
)

// The types of a quota entity's parts, by the names that they have in Kafka.
const (
	QuotaUser     = "user"
	QuotaClientID = "client-id"
	QuotaIP       = "ip"
)

// QuotaName is one part of a quota entity: absent, the default of its type, or a name.
type QuotaName struct {
	Given   bool   // the entity has this part
	Default bool   // it is whoever has no quota by name
	Name    string // whose it is, unless Default
}

// NamedQuota is the part of a name, DefaultQuota that of everybody else.
func NamedQuota(name string) QuotaName { return QuotaName{Given: true, Name: name} }

// DefaultQuota is the part of everybody who has none by name.
func DefaultQuota() QuotaName { return QuotaName{Given: true, Default: true} }

// QuotaEntity is whom quotas bound: a user, a client id, both together, or an address. It can be a map's key.
type QuotaEntity struct {
	User, ClientID, IP QuotaName
}

// QuotaPart is one part of an entity with its type.
type QuotaPart struct {
	Type string
	QuotaName
}

// Parts are the parts that the entity has: user, client id, address.
func (e QuotaEntity) Parts() []QuotaPart {
	var parts []QuotaPart
	for _, p := range []QuotaPart{{QuotaUser, e.User}, {QuotaClientID, e.ClientID}, {QuotaIP, e.IP}} {
		if p.Given {
			parts = append(parts, p)
		}
	}
	return parts
}

// With is the entity with one more part; false if the type is unknown.
func (e QuotaEntity) With(typ string, n QuotaName) (QuotaEntity, bool) {
	switch typ {
	case QuotaUser:
		e.User = n
	case QuotaClientID:
		e.ClientID = n
	case QuotaIP:
		e.IP = n
	default:
		return e, false
	}
	return e, true
}

// String is how the entity is written in its key: type=escaped name, or just the type for the default, joined by '/'.
func (e QuotaEntity) String() string {
	var b strings.Builder
	for i, p := range e.Parts() {
		if i > 0 {
			b.WriteByte('/')
		}
		b.WriteString(p.Type)
		if !p.Default {
			b.WriteByte('=')
			b.WriteString(url.QueryEscape(p.Name))
		}
	}
	return b.String()
}

// parseQuotaEntity reads what String writes, and nothing else: an entity has one key.
func parseQuotaEntity(s string) (e QuotaEntity, ok bool) {
	for part := range strings.SplitSeq(s, "/") {
		typ, escaped, named := strings.Cut(part, "=")
		n := DefaultQuota()
		if named {
			name, err := url.QueryUnescape(escaped)
			if err != nil {
				return e, false
			}
			n = NamedQuota(name)
		}
		if e, ok = e.With(typ, n); !ok {
			return e, false
		}
	}
	return e, e.String() == s
}

// EncodeQuotas makes the value of an entity's quotas.
func EncodeQuotas(quotas map[string]float64) []byte {
	w := newWriter(8 + 32*len(quotas))
	w.uv(uint64(len(quotas)))
	for _, k := range slices.Sorted(maps.Keys(quotas)) {
		w.str(k)
		w.f64(quotas[k])
	}
	return w.b
}

// DecodeQuotas reads what EncodeQuotas makes; nil for an empty set.
func DecodeQuotas(b []byte) (map[string]float64, error) {
	r := newReader("a set of quotas", b)
	n := r.count(9)
	var quotas map[string]float64
	if n > 0 {
		quotas = make(map[string]float64, n)
	}
	for i, last := 0, ""; i < n && r.err == nil; i++ {
		k := r.str()
		if i > 0 && k <= last {
			r.fail()
			break
		}
		last = k
		v := r.f64()
		if math.IsNaN(v) {
			r.fail()
		}
		quotas[k] = v
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return quotas, nil
}

// quotaSet is the quotas of one entity in an image.
type quotaSet struct {
	entity QuotaEntity
	quotas map[string]float64
}

func newQuotaTree() *btree.BTreeG[quotaSet] {
	return btree.NewG(treeDegree, func(a, b quotaSet) bool { return a.entity.less(b.entity) })
}

// less orders entities by user, then client id, then address: the default before names before none.
func (e QuotaEntity) less(o QuotaEntity) bool {
	for _, p := range [][2]QuotaName{{e.User, o.User}, {e.ClientID, o.ClientID}, {e.IP, o.IP}} {
		if p[0] != p[1] {
			return p[0].less(p[1])
		}
	}
	return false
}

func (n QuotaName) less(o QuotaName) bool {
	switch {
	case n.Given != o.Given:
		return n.Given
	case n.Default != o.Default:
		return n.Default
	}
	return n.Name < o.Name
}

// Quotas are the quotas of an entity by their keys; nil when there are none; read only.
func (i *Image) Quotas(e QuotaEntity) map[string]float64 {
	q, _ := i.quotas.Get(quotaSet{entity: e})
	return q.quotas
}

// EachQuota goes through all entities that have quotas, in a fixed order.
func (i *Image) EachQuota() iter.Seq2[QuotaEntity, map[string]float64] {
	return func(yield func(QuotaEntity, map[string]float64) bool) {
		i.quotas.Ascend(func(q quotaSet) bool { return yield(q.entity, q.quotas) })
	}
}

func (b *builder) finishQuotas(d *Delta) {
	if len(b.quotas) == 0 {
		return
	}
	b.img.quotas = b.base.quotas.Clone()
	entities := map[QuotaEntity]bool{}
	for e, q := range b.quotas {
		entities[e] = true
		if len(q) == 0 {
			b.img.quotas.Delete(quotaSet{entity: e})
		} else {
			b.img.quotas.ReplaceOrInsert(quotaSet{entity: e, quotas: q})
		}
	}
	d.quotas(b.base, b.img, entities)
}

// quotas lists those of the entities whose quotas differ.
func (d *Delta) quotas(from, to *Image, entities map[QuotaEntity]bool) {
	for e := range entities {
		if !maps.Equal(from.Quotas(e), to.Quotas(e)) {
			d.QuotasChanged = append(d.QuotasChanged, e)
		}
	}
	sort.Slice(d.QuotasChanged, func(i, j int) bool { return d.QuotasChanged[i].less(d.QuotasChanged[j]) })
}

// allQuotas are the entities of two images.
func allQuotas(from, to *Image) map[QuotaEntity]bool {
	entities := map[QuotaEntity]bool{}
	for _, i := range []*Image{from, to} {
		for e := range i.EachQuota() {
			entities[e] = true
		}
	}
	return entities
}
