package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Quota is what a client, or several that share a quota, has used of it.
type Quota struct {
	Resource       string // Produce, Fetch, Request or ControllerMutation.
	User, ClientID string // One of them may be empty.
	Rate           float64
	Throttle       float64 // Average of the throttles of the last minute, in milliseconds.
	Tokens         float64 // Left, of ControllerMutation.
}

// maxQuotas bounds the clients that have series.
const maxQuotas = 1000

// quotaRates are the names that Kafka's rates have, by resource.
func quotaRates() map[string][2]string {
	bytes := [2]string{"byte_rate", "Bytes a second of a client with a quota."}
	return map[string][2]string{
		"Produce": bytes, "Fetch": bytes,
		"Request":            {"request_time", "Percent of a processor that requests of a client with a quota take."},
		"ControllerMutation": {"mutation_rate", "Partitions a second that a client with a quota creates and deletes."},
	}
}

// collectQuotas sends the series that the JMX exporter's example makes of Kafka's
// metrics of quotas. A part of the client that a quota does not name has no label.
func collectQuotas(ch chan<- prometheus.Metric, quotas []Quota) {
	rates := quotaRates()
	shown := map[[3]string]bool{}
	for _, q := range quotas {
		// Clients name themselves, by any bytes; two that look alike would spoil the scrape.
		q.User, q.ClientID = strings.ToValidUTF8(q.User, "?"), strings.ToValidUTF8(q.ClientID, "?")
		key := [3]string{q.Resource, q.User, q.ClientID}
		if shown[key] {
			continue
		}
		shown[key] = true
		names, values := []string{"resource"}, []string{q.Resource}
		if q.User != "" {
			names, values = append(names, "user"), append(values, q.User)
		}
		if q.ClientID != "" {
			names, values = append(names, "clientId"), append(values, q.ClientID)
		}
		send := func(name, help string, v float64) {
			ch <- gauge(prometheus.NewDesc("kafka_server_quota_"+name, help, names, nil), v, values...)
		}
		rate := rates[q.Resource]
		send(rate[0], rate[1], q.Rate)
		send("throttle_time", "Milliseconds that a client with a quota has to wait after a request, on average over the last minute.", q.Throttle)
		if q.Resource == "ControllerMutation" {
			send("tokens", "Partitions that a client with a quota may create and delete at once.", q.Tokens)
		}
	}
}
