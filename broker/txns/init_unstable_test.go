package txns

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/protocol"
)

// initBody is a request of version 6 without its header.
func initBody(id *string, timeout int32, enable2PC, keepPrepared byte) []byte {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version, req.TransactionalID, req.TransactionTimeoutMillis = initStable, id, timeout
	b := req.AppendTo(nil)
	return append(b[:len(b)-1], enable2PC, keepPrepared, 0)
}

// initV6 sends such a request and reads its answer.
func (r *rig) initV6(body []byte) *kmsg.InitProducerIDResponse {
	r.t.Helper()
	api := r.apis[int16(kmsg.InitProducerID)]
	c := &protocol.Call{Ctx: r.t.Context(), Key: api.Key, Version: initUnstable}
	require.NoError(r.t, api.Decode(c, body))
	out := c.Outcome(api.Submit(c)).Body.Pieces[0]
	resp := kmsg.NewPtrInitProducerIDResponse()
	resp.Version = initStable
	ongoing := len(out) - 11
	require.Equal(r.t, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0}, out[ongoing:])
	require.NoError(r.t, resp.ReadFrom(append(out[:ongoing:ongoing], 0)))
	return resp
}

func TestUnstableInitProducerID(t *testing.T) {
	r := newRig(t, "unstable.api.versions.enable=true")
	id, empty := "a", ""
	require.Equal(t, int16(initUnstable), r.apis[int16(kmsg.InitProducerID)].Max)
	got := r.initV6(initBody(&id, 60_000, 0, 0))
	require.Zero(t, got.ErrorCode)
	first := got.ProducerID
	got = r.initV6(initBody(&id, 60_000, 0, 0))
	require.Zero(t, got.ErrorCode)
	require.Equal(t, first, got.ProducerID)
	require.Equal(t, int16(1), got.ProducerEpoch)
	for _, c := range []struct {
		id                      *string
		timeout                 int32
		enable2PC, keepPrepared byte
		want                    int16
	}{
		{&id, 60_000, 1, 0, kerr.TransactionalIDAuthorizationFailed.Code},
		{&id, 60_000, 1, 1, kerr.TransactionalIDAuthorizationFailed.Code},
		{&id, 60_000, 0, 1, kerr.UnsupportedVersion.Code},
		{&id, -5, 0, 1, kerr.UnsupportedVersion.Code},
		{&id, -5, 0, 0, kerr.InvalidTransactionTimeout.Code},
		{&empty, 60_000, 1, 1, kerr.InvalidRequest.Code},
		{nil, 60_000, 1, 1, 0},
	} {
		require.Equal(t, c.want, r.initV6(initBody(c.id, c.timeout, c.enable2PC, c.keepPrepared)).ErrorCode, "%+v", c)
	}

	// Older versions are served as ever.
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version, req.TransactionalID, req.TransactionTimeoutMillis = 1, &id, 60_000
	api := r.apis[req.Key()]
	reply, err := api.Do(t.Context(), req, nil)
	require.NoError(t, err)
	require.Zero(t, reply.Msg.(*kmsg.InitProducerIDResponse).ErrorCode)

	for _, body := range [][]byte{
		{}, {2, 'a', 0, 0}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 'a'},
	} {
		require.ErrorIs(t, api.Decode(&protocol.Call{Version: initUnstable}, body), protocol.ErrMalformed, "%x", body)
	}
}

func TestUnstableVersionsAreServedWhenAskedFor(t *testing.T) {
	require.Equal(t, int16(initStable), newRig(t).apis[int16(kmsg.InitProducerID)].Max)
}
