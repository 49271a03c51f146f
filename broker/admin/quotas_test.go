package admin

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/protocol"
)

// quotaEntry makes an entry of "type=name,type: key=value -key": without a name it is
// the default.
func quotaEntryOf(t *testing.T, text string) kmsg.AlterClientQuotasRequestEntry {
	t.Helper()
	var e kmsg.AlterClientQuotasRequestEntry
	entity, ops, ok := strings.Cut(text, ": ")
	require.True(t, ok, text)
	for part := range strings.SplitSeq(entity, ",") {
		if part == "" {
			continue
		}
		typ, name, named := strings.Cut(part, "=")
		p := kmsg.AlterClientQuotasRequestEntryEntity{Type: typ}
		if named {
			p.Name = &name
		}
		e.Entity = append(e.Entity, p)
	}
	for op := range strings.FieldsSeq(ops) {
		if key, remove := strings.CutPrefix(op, "-"); remove {
			e.Ops = append(e.Ops, kmsg.AlterClientQuotasRequestEntryOp{Key: key, Remove: true})
			continue
		}
		key, value, _ := strings.Cut(op, "=")
		o := kmsg.AlterClientQuotasRequestEntryOp{Key: key}
		_, err := fmt.Sscan(value, &o.Value)
		require.NoError(t, err)
		e.Ops = append(e.Ops, o)
	}
	return e
}

// alterQuotas gives the codes of the entries.
func (w *world) alterQuotas(validateOnly bool, entries ...string) (codes []int16) {
	t := w.t.(*testing.T)
	t.Helper()
	req := kmsg.NewPtrAlterClientQuotasRequest()
	req.Version, req.ValidateOnly = 1, validateOnly
	for _, e := range entries {
		req.Entries = append(req.Entries, quotaEntryOf(t, e))
	}
	for _, row := range w.ask(req).(*kmsg.AlterClientQuotasResponse).Entries {
		codes = append(codes, row.ErrorCode)
		require.Equal(t, row.ErrorCode == 0, row.ErrorMessage == nil)
	}
	return codes
}

// described are the quotas that a filter shows: "type=name,type: key=value".
func (w *world) described(strict bool, filter ...kmsg.DescribeClientQuotasRequestComponent) []string {
	req := kmsg.NewPtrDescribeClientQuotasRequest()
	req.Version, req.Strict, req.Components = 1, strict, filter
	out := []string{}
	for _, e := range w.ask(req).(*kmsg.DescribeClientQuotasResponse).Entries {
		var parts, values []string
		for _, p := range e.Entity {
			if p.Name != nil {
				parts = append(parts, p.Type+"="+*p.Name)
			} else {
				parts = append(parts, p.Type)
			}
		}
		for _, v := range e.Values {
			values = append(values, fmt.Sprintf("%s=%g", v.Key, v.Value))
		}
		out = append(out, strings.Join(parts, ",")+": "+strings.Join(values, " "))
	}
	return out
}

func TestQuotasAreJudgedAsByKafka(t *testing.T) {
	w := newWorld(t, "")
	for entry, code := range map[string]int16{
		"user=u: producer_byte_rate=1 consumer_byte_rate=9223372036854775807": 0,
		"user: request_percentage=0.01 controller_mutation_rate=1.5":          0,
		"user=u,client-id=c: request_percentage=+Inf":                         0,
		"client-id: ":          0,
		"client-id=c: -banana": 0,
		"ip=127.0.0.1: connection_creation_rate=2147483647": 0,
		"ip=::1: connection_creation_rate=1":                0,
		"ip: connection_creation_rate=1":                    0,
		": producer_byte_rate=1":                            42,
		"banana=x: producer_byte_rate=1":                    42,
		"user=: producer_byte_rate=1":                       42,
		"ip=: connection_creation_rate=1":                   42,
		"ip=1.2.3.4,user=u: connection_creation_rate=1":     42,
		"ip=not-an-ip: connection_creation_rate=1":          42,
		"ip=1.2.3.4: producer_byte_rate=1":                  42,
		"user=u: connection_creation_rate=1":                42,
		"user=u: banana=1":                                  42,
		"user=u: producer_byte_rate=0":                      42,
		"user=u: producer_byte_rate=-1":                     42,
		"user=u: producer_byte_rate=1.5":                    42,
		"user=u: consumer_byte_rate=1e19":                   42,
		"user=u: request_percentage=NaN":                    42,
		"ip: connection_creation_rate=2147483648":           42,
		"ip: connection_creation_rate=0.5":                  42,
		"user=u: producer_byte_rate=1 producer_byte_rate=2": 42,
		"user=u: producer_byte_rate=1 -producer_byte_rate":  42,
	} {
		assert.Equal(t, []int16{code}, w.alterQuotas(true, entry), entry)
	}
	require.Empty(t, w.described(false), "validated only")
	require.Zero(t, w.store.changes)
}

func TestAWrongQuotaDoesNotAffectTheOthers(t *testing.T) {
	w := newWorld(t, "")
	require.Equal(t, []int16{0, 42, 42, 0}, w.alterQuotas(false,
		"user=a: producer_byte_rate=5", "user=b: producer_byte_rate=5 banana=1", "banana: producer_byte_rate=5",
		"user,client-id: request_percentage=5"))
	require.Equal(t, []string{"user,client-id: request_percentage=5", "user=a: producer_byte_rate=5"}, w.described(false))
	require.Equal(t, []int16{42, 0}, w.alterQuotas(false,
		"user=a: -producer_byte_rate", "user=c: producer_byte_rate=5", "user=a: consumer_byte_rate=7"), "an entity that is there twice stays")
	require.Contains(t, w.described(false), "user=a: producer_byte_rate=5")
	require.Equal(t, []int16{0}, w.alterQuotas(false, "user=z,user=a: -producer_byte_rate consumer_byte_rate=8"), "the last of a type counts")
	require.Contains(t, w.described(false), "user=a: consumer_byte_rate=8")
}

func TestEveryMatchOfQuotas(t *testing.T) {
	w := newWorld(t, "")
	entities := []string{
		"user: ", "user=a: ", "user,client-id: ", "user=a,client-id: ", "user=a,client-id=c: ", "user=b,client-id=c: ", "client-id: ", "client-id=c: ",
	}
	for _, e := range entities {
		require.Equal(t, []int16{0}, w.alterQuotas(false, e+"producer_byte_rate=1"))
	}
	require.Equal(t, []int16{0}, w.alterQuotas(false, "ip=1.2.3.4: connection_creation_rate=1"))
	is := func(typ string, match kmsg.QuotasMatchType, name ...string) kmsg.DescribeClientQuotasRequestComponent {
		c := kmsg.DescribeClientQuotasRequestComponent{EntityType: typ, MatchType: match}
		if len(name) > 0 {
			c.Match = &name[0]
		}
		return c
	}
	const exact, byDefault, each = kmsg.QuotasMatchTypeExact, kmsg.QuotasMatchTypeDefault, kmsg.QuotasMatchTypeAny
	for _, c := range []struct {
		strict bool
		filter []kmsg.DescribeClientQuotasRequestComponent
		want   []string
	}{
		{false, nil, append(entities[:len(entities):len(entities)], "ip=1.2.3.4: ")},
		{true, nil, nil},
		{false, []kmsg.DescribeClientQuotasRequestComponent{is("user", exact, "a")}, []string{"user=a: ", "user=a,client-id: ", "user=a,client-id=c: "}},
		{true, []kmsg.DescribeClientQuotasRequestComponent{is("user", exact, "a")}, []string{"user=a: "}},
		{false, []kmsg.DescribeClientQuotasRequestComponent{is("user", byDefault)}, []string{"user: ", "user,client-id: "}},
		{true, []kmsg.DescribeClientQuotasRequestComponent{is("user", each)}, []string{"user: ", "user=a: "}},
		{
			true,
			[]kmsg.DescribeClientQuotasRequestComponent{is("user", each), is("client-id", exact, "c")},
			[]string{"user=a,client-id=c: ", "user=b,client-id=c: "},
		},
		{false, []kmsg.DescribeClientQuotasRequestComponent{is("client-id", byDefault), is("user", byDefault)}, []string{"user,client-id: "}},
		{false, []kmsg.DescribeClientQuotasRequestComponent{is("ip", each)}, []string{"ip=1.2.3.4: "}},
		{false, []kmsg.DescribeClientQuotasRequestComponent{is("ip", byDefault)}, nil},
		{false, []kmsg.DescribeClientQuotasRequestComponent{is("user", exact, "none")}, nil},
	} {
		var want []string
		for _, e := range c.want {
			key := "producer_byte_rate=1"
			if strings.HasPrefix(e, "ip") {
				key = "connection_creation_rate=1"
			}
			want = append(want, e+key)
		}
		assert.ElementsMatch(t, want, w.described(c.strict, c.filter...), "%v %v", c.strict, c.filter)
	}
}

func TestQuotasThatCannotBeStoredAreNotSet(t *testing.T) {
	w := newWorld(t, "")
	w.store.down = kerr.RequestTimedOut
	require.Equal(t, []int16{7, 42}, w.alterQuotas(false, "user=a: producer_byte_rate=5", "user=b: banana=1"))
	require.Empty(t, w.described(false))
}

// slow lets a client change one partition a second, eleven at once.
func (w *world) slow() {
	require.Equal(w.t, []int16{0}, w.alterQuotas(false, "client-id: controller_mutation_rate=1"))
}

// as sends a request as a client.
func (w *world) as(client string, req kmsg.Request) kmsg.Response {
	w.t.Helper()
	api := w.apis[req.Key()]
	submit := api.Submit
	api.Submit = func(c *protocol.Call) protocol.Finish {
		c.ClientID = &client
		return submit(c)
	}
	reply, err := api.Do(w.t.Context(), req, w.conn)
	require.NoError(w.t, err)
	w.apply()
	return reply.Msg
}

func (w *world) createAs(client string, version int16, partitions int32, name string) *kmsg.CreateTopicsResponse {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version = version
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, 1
	req.Topics = append(req.Topics, t)
	return w.as(client, req).(*kmsg.CreateTopicsResponse)
}

func TestChangesOfTopicsBeyondTheQuotaAreRefused(t *testing.T) {
	const throttled = int16(89)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "")
		w.create(10, "there")
		w.slow()
		resp := w.createAs("c", 7, 20, "a")
		require.Zero(t, resp.Topics[0].ErrorCode, "a request may overdraw the quota")
		require.Zero(t, resp.ThrottleMillis)
		resp = w.createAs("c", 6, 1, "b")
		require.Equal(t, throttled, resp.Topics[0].ErrorCode)
		require.EqualValues(t, 9000, resp.ThrottleMillis)
		require.Nil(t, w.store.Image().Topic("b"))
		require.Zero(t, w.createAs("other", 7, 1, "o").Topics[0].ErrorCode)

		grow := kmsg.NewPtrCreatePartitionsRequest()
		grow.Version = 3
		grow.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: "there", Count: 11}, {Topic: "none", Count: 3}}
		grown := w.as("c", grow).(*kmsg.CreatePartitionsResponse)
		require.Equal(t, throttled, grown.Topics[0].ErrorCode)
		require.Equal(t, int16(3), grown.Topics[1].ErrorCode, "what is wrong anyway is told so")
		require.EqualValues(t, 9000, grown.ThrottleMillis)

		del := kmsg.NewPtrDeleteTopicsRequest()
		del.Version = 5
		del.TopicNames = []string{"there"}
		deleted := w.as("c", del).(*kmsg.DeleteTopicsResponse)
		require.Equal(t, throttled, deleted.Topics[0].ErrorCode)
		require.EqualValues(t, 9000, deleted.ThrottleMillis)
		require.NotNil(t, w.store.Image().Topic("there"))

		time.Sleep(9 * time.Second)
		require.Zero(t, w.as("c", del).(*kmsg.DeleteTopicsResponse).Topics[0].ErrorCode)
		require.Equal(t, throttled, w.createAs("c", 7, 1, "b").Topics[0].ErrorCode, "ten partitions were deleted")
	})
}

func TestChangesOfTopicsOfOlderClientsAreMadeAndThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "")
		w.slow()
		w.createAs("c", 5, 20, "a")
		resp := w.createAs("c", 5, 1, "b")
		require.Zero(t, resp.Topics[0].ErrorCode)
		require.EqualValues(t, 10_000, resp.ThrottleMillis)
		grow := kmsg.NewPtrCreatePartitionsRequest()
		grow.Version = 2
		grow.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: "b", Count: 2}}
		grown := w.as("c", grow).(*kmsg.CreatePartitionsResponse)
		require.Zero(t, grown.Topics[0].ErrorCode)
		require.EqualValues(t, 11_000, grown.ThrottleMillis)
		del := kmsg.NewPtrDeleteTopicsRequest()
		del.Version = 4
		del.TopicNames = []string{"b"}
		deleted := w.as("c", del).(*kmsg.DeleteTopicsResponse)
		require.Zero(t, deleted.Topics[0].ErrorCode)
		require.EqualValues(t, 13_000, deleted.ThrottleMillis)
	})
}

func TestTopicsThatAreAskedAboutCountForTheQuota(t *testing.T) {
	w := newWorld(t, "num.partitions=12")
	w.slow()
	ask := func(name string) {
		req := kmsg.NewPtrMetadataRequest()
		req.Version, req.AllowAutoTopicCreation = 12, true
		req.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
		resp := w.as("c", req).(*kmsg.MetadataResponse)
		require.Equal(t, kerr.UnknownTopicOrPartition.Code, resp.Topics[0].ErrorCode)
		w.creator.wg.Wait()
	}
	ask("a")
	require.NotNil(t, w.store.Image().Topic("a"))
	ask("b")
	require.Nil(t, w.store.Image().Topic("b"), "the quota is overdrawn")
}

func TestTheLogNamesAnEntity(t *testing.T) {
	require.Equal(t, "user default, client-id c", entityText(meta.QuotaEntity{User: meta.DefaultQuota(), ClientID: meta.NamedQuota("c")}))
}
