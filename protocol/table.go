package protocol

import (
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// keyApiVersions is the API whose unknown versions are answered.
const keyApiVersions = 18

// ErrAPITable is a table of APIs that contradicts itself or kmsg.
var ErrAPITable = errors.New("bad table of APIs")

// row is an API as the server uses it.
type row struct {
	API
	schema   *requestSchema
	flexible int16
}

// serves says whether a version is served.
func (r *row) serves(version int16) bool { return version >= r.Min && version <= r.Max }

// flexibleAnswer says whether the header of an answer has tags.
func (r *row) flexibleAnswer(version int16) bool {
	return r.Key != keyApiVersions && version >= r.flexible
}

// advertised is the range that ApiVersions shows.
func (r *row) advertised() (lowest, highest int16) {
	if r.Advertise != nil {
		return r.Advertise[0], r.Advertise[1]
	}
	return r.Min, r.Max
}

// apiTable is what a server serves.
type apiTable struct {
	rows     []*row // by key, nil where nothing is served
	shown    []kmsg.ApiVersionsResponseApiKey
	features func() Features
}

// newTable checks the rows and adds those that are answered here.
func newTable(apis []API, features func() Features, maxRequest int) (*apiTable, error) {
	t := &apiTable{features: features}
	for _, api := range append(slices.Clone(apis), t.own()...) {
		schema := schemas()[api.Key]
		switch {
		case schema == nil:
			return nil, fmt.Errorf("%w: no layout is known of key %d", ErrAPITable, api.Key)
		case api.Min < 0 || api.Min > api.Max || int(api.Max) >= len(schema.programs):
			return nil, fmt.Errorf("%w: %s: versions %d to %d", ErrAPITable, schema.name, api.Min, api.Max)
		case api.Decode == nil && api.Max > kmsg.RequestForKey(api.Key).MaxVersion():
			return nil, fmt.Errorf("%w: %s: kmsg does not decode version %d", ErrAPITable, schema.name, api.Max)
		case api.Submit == nil:
			return nil, fmt.Errorf("%w: %s has no handler", ErrAPITable, schema.name)
		}
		if api.MaxBytes <= 0 {
			api.MaxBytes = DefaultMaxBytes
		}
		api.MaxBytes = min(api.MaxBytes, maxRequest)
		for int(api.Key) >= len(t.rows) {
			t.rows = append(t.rows, nil)
		}
		if t.rows[api.Key] != nil {
			return nil, fmt.Errorf("%w: %s is there twice", ErrAPITable, schema.name)
		}
		t.rows[api.Key] = &row{API: api, schema: schema, flexible: schema.flexible}
	}
	for _, r := range t.rows {
		if r == nil || r.Hidden {
			continue
		}
		k := kmsg.NewApiVersionsResponseApiKey()
		k.ApiKey = r.Key
		k.MinVersion, k.MaxVersion = r.advertised()
		t.shown = append(t.shown, k)
	}
	return t, nil
}

// find gives the row that takes a request, nil if none does: the row of
// ApiVersions takes every version.
func (t *apiTable) find(key, version int16) *row {
	if key < 0 || int(key) >= len(t.rows) {
		return nil
	}
	r := t.rows[key]
	if r == nil || !r.serves(version) && key != keyApiVersions {
		return nil
	}
	return r
}

// own are the APIs that need nothing but the server.
func (t *apiTable) own() []API {
	const small = 64 << 10
	return []API{
		{Key: 17, Min: 0, Max: 1, MaxBytes: small, Submit: saslHandshake},
		{Key: keyApiVersions, Min: 0, Max: 4, MaxBytes: small, Submit: t.apiVersions},
		{Key: 36, Min: 0, Max: 2, MaxBytes: small, Submit: saslAuthenticate},
	}
}
