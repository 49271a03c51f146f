package metrics

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQuotasAreShownUnderKafkasNames(t *testing.T) {
	m := New(Options{})
	asked := 0
	m.SetSource(Source{Quotas: func(most int) []Quota {
		asked = most
		return []Quota{
			{Resource: "Produce", ClientID: "c", Rate: 1000, Throttle: 20},
			{Resource: "Fetch", User: "u", ClientID: "c", Rate: 2000},
			{Resource: "Request", User: "u", Rate: 12.5, Throttle: 1},
			{Resource: "ControllerMutation", User: "u", Rate: 2, Tokens: -7},
		}
	}})
	requireSample(t, m, 1000, "kafka_server_quota_byte_rate", "clientId=c,resource=Produce")
	requireSample(t, m, 2000, "kafka_server_quota_byte_rate", "clientId=c,resource=Fetch,user=u")
	requireSample(t, m, 12.5, "kafka_server_quota_request_time", "resource=Request,user=u")
	requireSample(t, m, 2, "kafka_server_quota_mutation_rate", "resource=ControllerMutation,user=u")
	requireSample(t, m, -7, "kafka_server_quota_tokens", "resource=ControllerMutation,user=u")
	requireSample(t, m, 20, "kafka_server_quota_throttle_time", "clientId=c,resource=Produce")
	requireSample(t, m, 1, "kafka_server_quota_throttle_time", "resource=Request,user=u")
	require.Equal(t, maxQuotas, asked)
}

func TestNamesOfClientsDoNotSpoilTheMetrics(t *testing.T) {
	m := New(Options{})
	m.SetSource(Source{Quotas: func(int) []Quota {
		return []Quota{
			{Resource: "Produce", ClientID: "a\xff", Rate: 1}, {Resource: "Produce", ClientID: "a\xfe", Rate: 2}, {Resource: "Produce", ClientID: "b", Rate: 3},
		}
	}})
	requireSample(t, m, 1, "kafka_server_quota_byte_rate", "clientId=a?,resource=Produce")
	requireSample(t, m, 3, "kafka_server_quota_byte_rate", "clientId=b,resource=Produce")
}
