package metrics

import (
	"maps"

	"github.com/prometheus/client_golang/prometheus"
)

// Topic counts the traffic of one topic on this broker. Whoever holds a
// partition asks for it once and keeps it.
type Topic struct {
	BytesIn            Counter // Record batches as produced.
	BytesOut           Counter // Record batches as fetched by consumers.
	BytesRejected      Counter // Batches over max.message.bytes.
	MessagesIn         Counter
	Produces, Fetches  Counter // Requests for a partition.
	FailedProduces     Counter
	FailedFetches      Counter
	ProduceConversions Counter // Batches that were compressed anew.
	InvalidMagic       Counter
	InvalidCRC         Counter
	InvalidRecords     Counter // Offsets or sequences inside a batch that do not fit.
	NoKeyCompacted     Counter // Records without a key for a compacted topic.
}

// topicSeries joins a name with the counter that it shows.
type topicSeries struct {
	desc    *prometheus.Desc
	labeled *prometheus.Desc
	of      func(*Topic) *Counter
}

func newTopicSeries() []topicSeries {
	series := func(name, help string, of func(*Topic) *Counter) topicSeries {
		fq := "kafka_server_brokertopicmetrics_" + name + "_total"
		return topicSeries{
			desc:    prometheus.NewDesc(fq, help, nil, nil),
			labeled: prometheus.NewDesc(fq, help, []string{"topic"}, nil),
			of:      of,
		}
	}
	return []topicSeries{
		series("bytesin", "Bytes of record batches produced.", func(t *Topic) *Counter { return &t.BytesIn }),
		series("bytesout", "Bytes of record batches fetched by consumers.", func(t *Topic) *Counter { return &t.BytesOut }),
		series("bytesrejected", "Bytes of record batches refused as too large.", func(t *Topic) *Counter { return &t.BytesRejected }),
		series("messagesin", "Records produced.", func(t *Topic) *Counter { return &t.MessagesIn }),
		series("totalproducerequests", "Produce requests, counted once a partition.", func(t *Topic) *Counter { return &t.Produces }),
		series("totalfetchrequests", "Fetch requests, counted once a partition.", func(t *Topic) *Counter { return &t.Fetches }),
		series("failedproducerequests", "Produce requests answered with an error, counted once a partition.", func(t *Topic) *Counter { return &t.FailedProduces }),
		series("failedfetchrequests", "Fetch requests answered with an error, counted once a partition.", func(t *Topic) *Counter { return &t.FailedFetches }),
		series("producemessageconversions", "Record batches compressed anew for the topic's compression.type.", func(t *Topic) *Counter { return &t.ProduceConversions }),
		series("invalidmagicnumberrecords", "Produced batches of an unknown format.", func(t *Topic) *Counter { return &t.InvalidMagic }),
		series("invalidmessagecrcrecords", "Produced batches with a wrong checksum.", func(t *Topic) *Counter { return &t.InvalidCRC }),
		series("invalidoffsetorsequencerecords", "Produced batches whose offsets or sequences do not fit.", func(t *Topic) *Counter { return &t.InvalidRecords }),
		series("nokeycompactedtopicrecords", "Produced batches with a record without a key, for a compacted topic.", func(t *Topic) *Counter { return &t.NoKeyCompacted }),
	}
}

// Topic returns the counters of a topic. Beyond MaxTopics topics all share one,
// which is part of the totals only.
func (m *Metrics) Topic(name string) *Topic {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.topics[name]; t != nil {
		return t
	}
	if len(m.topics) >= m.maxTopics {
		return &m.others
	}
	t := new(Topic)
	m.topics[name] = t
	return t
}

// ForgetTopic ends the series of a deleted topic; what it counted stays in the totals.
func (m *Metrics) ForgetTopic(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.topics[name]
	if t == nil {
		return
	}
	delete(m.topics, name)
	for _, s := range m.topicSeries {
		s.of(&m.others).n.Add(s.of(t).Value())
	}
}

func (m *Metrics) collectTopics(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	topics := maps.Clone(m.topics)
	others := make([]uint64, len(m.topicSeries))
	for i, s := range m.topicSeries {
		others[i] = s.of(&m.others).Value()
	}
	m.mu.Unlock()

	for i, s := range m.topicSeries {
		total := others[i]
		for name, t := range topics {
			n := s.of(t).Value()
			total += n
			ch <- counter(s.labeled, float64(n), name)
		}
		ch <- counter(s.desc, float64(total))
	}
}
