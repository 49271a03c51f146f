package wire

import (
	"fmt"
	"reflect"
	"strings"
)

// keyFields are the fields that name an element of an array in an answer.
// Kafka answers often in another order than was asked, so elements are matched
// by name.
var keyFields = []string{
	"ApiKey", "Topic", "Name", "TopicID", "Partition", "Type", "ResourceType", "ResourceName", "ConfigName",
	"NodeID", "BrokerID", "Group", "TransactionalID", "ReplicaID",
}

// pair is one element of both sides.
type pair struct {
	name      string
	want, got reflect.Value
}

// pairUp matches the elements of two arrays by their names, or by position
// where they have none or a name stands twice. missing and extra are the names
// that one side alone has.
func (ids *identities) pairUp(want, got reflect.Value) (pairs []pair, missing, extra []string) {
	wantKeys, wantOK := ids.keys(want, true)
	gotKeys, gotOK := ids.keys(got, false)
	if !wantOK || !gotOK {
		for i := range min(want.Len(), got.Len()) {
			pairs = append(pairs, pair{fmt.Sprint("#", i), want.Index(i), got.Index(i)})
		}
		for i := got.Len(); i < want.Len(); i++ {
			missing = append(missing, fmt.Sprint("#", i))
		}
		for i := want.Len(); i < got.Len(); i++ {
			extra = append(extra, fmt.Sprint("#", i))
		}
		return pairs, missing, extra
	}
	at := make(map[string]int, len(gotKeys))
	for i, k := range gotKeys {
		at[k] = i
	}
	for i, k := range wantKeys {
		if j, ok := at[k]; ok {
			pairs = append(pairs, pair{k, want.Index(i), got.Index(j)})
			delete(at, k)
			continue
		}
		missing = append(missing, k)
	}
	for _, k := range gotKeys {
		if _, ok := at[k]; ok {
			extra = append(extra, k)
		}
	}
	return pairs, missing, extra
}

// keys names each element; ok is false where elements have no names of their own.
func (ids *identities) keys(v reflect.Value, recorded bool) (keys []string, ok bool) {
	seen := map[string]bool{}
	for i := range v.Len() {
		k := ids.key(reflect.Indirect(v.Index(i)), recorded)
		if k == "" || seen[k] {
			return nil, false
		}
		seen[k] = true
		keys = append(keys, k)
	}
	return keys, true
}

func (ids *identities) key(v reflect.Value, recorded bool) string {
	if v.Kind() != reflect.Struct {
		if v.Kind() == reflect.String {
			return v.String()
		}
		return ""
	}
	if k := v.FieldByName("Key"); k.IsValid() && k.Kind() == reflect.String {
		return k.String() // A coordinator's.
	}
	var parts []string
	named := false
	for _, f := range keyFields {
		field := v.FieldByName(f)
		if !field.IsValid() {
			continue
		}
		if field.Kind() == reflect.Pointer {
			if field.IsNil() {
				continue
			}
			field = field.Elem()
		}
		if id, isID := field.Interface().([16]byte); isID {
			// An id stands for its topic only where there is no name.
			if named || id == [16]byte{} {
				continue
			}
			if mapped, known := ids.topics[id]; recorded && known {
				id = mapped
			}
			parts = append(parts, fmt.Sprintf("%x", id[:4]))
			continue
		}
		if s, isString := field.Interface().(string); isString {
			named = named || s != ""
			if s == "" && !named {
				s = `""`
			}
			parts = append(parts, s)
			continue
		}
		parts = append(parts, fmt.Sprint(field.Interface()))
	}
	return strings.Join(parts, "/")
}
