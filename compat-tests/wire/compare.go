package wire

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"
)

// Difference is one field in which an answer is not Kafka's.
type Difference struct {
	Exchange *Exchange
	Path     string
	Want     string
	Got      string
}

func (d Difference) String() string {
	return fmt.Sprintf("%s: %s: Kafka %s, here %s", d.Exchange, d.Path, d.Want, d.Got)
}

// varying are fields whose value belongs to the run; both sides must agree on
// whether there is one (not zero, not null, not negative).
var varying = map[string]bool{
	"TopicID": true, "SessionID": true, "ProducerID": true, "ErrorMessage": true,
	"LogAppendTime": true, "Timestamp": true, "FinalizedFeaturesEpoch": true,
	"TotalBytes": true, "UsableBytes": true, "LastFetchTimestamp": true, "LastCaughtUpTimestamp": true,
	"MaxTimestamp": true, "Dir": true, "ReplicaDirectoryID": true, "Documentation": true,
	"MemberID": true, "LeaderID": true, "LastTimestamp": true, "StartTimestamp": true,
}

// unrelated are fields that say something about the machine or the moment only.
var unrelated = map[string]bool{
	"Port": true, "ControllerID": true, "ClusterID": true,
	"Size": true, "OffsetLag": true,
}

// comparer collects the differences of one exchange.
type comparer struct {
	ids   *identities
	about *Exchange
	found []Difference
}

func (c *comparer) add(path, want, got string) {
	c.found = append(c.found, Difference{c.about, path, want, got})
}

func (c *comparer) compare(path string, want, got reflect.Value) {
	if want.Kind() == reflect.Pointer {
		if want.IsNil() || got.IsNil() {
			if want.IsNil() != got.IsNil() {
				c.add(path, show(want), show(got))
			}
			return
		}
		want, got = want.Elem(), got.Elem()
	}
	switch want.Kind() {
	case reflect.Struct:
		for i := range want.NumField() {
			f := want.Type().Field(i)
			if f.PkgPath == "" {
				c.field(path, f.Name, want.Field(i), got.Field(i))
			}
		}
	case reflect.Slice:
		c.slice(path, want, got)
	default:
		if !want.Equal(got) {
			c.add(path, show(want), show(got))
		}
	}
}

func (c *comparer) field(path, name string, want, got reflect.Value) {
	path = strings.TrimPrefix(path+"."+name, ".")
	switch {
	case name == "Version" || name == "UnknownTags" || unrelated[name]:
	case c.about.API == "DescribeQuorum" && (name == "HighWatermark" || name == "LogEndOffset"):
		// The length of the metadata log is the run's own.
	case varying[name]:
		if present(want) != present(got) {
			c.add(path, show(want), show(got))
		}
	case name == "RecordBatches" || name == "Records" && want.Kind() == reflect.Slice:
		c.batches(path, want.Bytes(), got.Bytes())
	default:
		c.compare(path, want, got)
	}
}

func (c *comparer) slice(path string, want, got reflect.Value) {
	if want.IsNil() != got.IsNil() && (want.Len() > 0 || got.Len() > 0 || c.nullable(path)) {
		c.add(path, show(want), show(got))
		return
	}
	if want.Type().Elem().Kind() == reflect.Uint8 {
		if string(want.Bytes()) != string(got.Bytes()) {
			c.add(path, show(want), show(got))
		}
		return
	}
	pairs, missing, extra := c.ids.pairUp(want, got)
	for _, k := range missing {
		c.add(path+"["+k+"]", "present", "absent")
	}
	for _, k := range extra {
		c.add(path+"["+k+"]", "absent", "present")
	}
	for _, p := range pairs {
		c.compare(path+"["+p.name+"]", p.want, p.got)
	}
}

// nullable tells the arrays in which null and empty mean different things.
func (c *comparer) nullable(path string) bool { return strings.HasSuffix(path, "AbortedTransactions") }

// batches compares stored record batches; what depends on the clock is left out.
func (c *comparer) batches(path string, want, got []byte) {
	wantBatches, gotBatches := splitBatches(want), splitBatches(got)
	if len(wantBatches) != len(gotBatches) {
		c.add(path, fmt.Sprint(len(wantBatches), " batches"), fmt.Sprint(len(gotBatches), " batches"))
		return
	}
	for i := range wantBatches {
		w, g := maskBatch(wantBatches[i]), maskBatch(gotBatches[i])
		if string(w) != string(g) {
			c.add(fmt.Sprintf("%s[%d]", path, i), fmt.Sprintf("%x", w), fmt.Sprintf("%x", g))
		}
	}
}

// splitBatches leaves out a last batch that was cut short: Kafka may send a
// part of it where a limit is met, which clients drop.
func splitBatches(b []byte) (out [][]byte) {
	for len(b) >= 61 {
		n := int64(binary.BigEndian.Uint32(b[8:])) + 12
		if n > int64(len(b)) {
			break
		}
		out, b = append(out, b[:n]), b[n:]
	}
	return out
}

// maskBatch clears checksum, times and producer id, and of a compressed batch
// the payload, which another encoder writes in other words.
func maskBatch(b []byte) []byte {
	m := append([]byte(nil), b...)
	clear(m[17:21])
	clear(m[27:51])
	if m[22]&7 != 0 {
		clear(m[8:12])
		m = m[:61]
	}
	return m
}

func present(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Int64, reflect.Int32:
		return v.Int() > 0
	case reflect.Pointer:
		return !v.IsNil()
	}
	return !v.IsZero()
}

func show(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil(), v.Kind() == reflect.Slice && v.IsNil():
		return "null"
	case v.Kind() == reflect.Pointer:
		return show(v.Elem())
	case v.Kind() == reflect.String:
		return fmt.Sprintf("%q", v.String())
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		return fmt.Sprintf("%d elements", v.Len())
	}
	return fmt.Sprintf("%v", v.Interface())
}
