package txn

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
)

func showProducer(p coordinator.Producer) string { return fmt.Sprintf("%d/%d", p.ID, p.Epoch) }

func showPlaces(list []Place) string {
	var words []string
	for _, p := range list {
		words = append(words, fmt.Sprintf("%s/%d", p.Topic, p.Partition))
	}
	return strings.Join(words, " ")
}

func showEnding(e *Ending) string {
	how := "abort"
	if e.Commit {
		how = "commit"
	}
	if e.Bumped {
		how += " with a raised epoch"
	}
	return strings.TrimSpace(fmt.Sprintf("%s: %s by %s %s", e.ID, how, showProducer(e.Producer), showPlaces(e.Places)))
}

// showRecord shows a record as another implementation reads it.
func (s *stage) showRecord(r coordinator.Record) string {
	var key kmsg.TxnMetadataKey
	require.NoError(s.t, key.ReadFrom(r.Key))
	if r.Value == nil {
		return key.TransactionalID + " is forgotten"
	}
	var v kmsg.TxnMetadataValue
	require.NoError(s.t, v.ReadFrom(r.Value))
	require.EqualValues(s.t, 1, v.Version)
	require.Equal(s.t, r.Value, v.AppendTo(nil), "no other bytes say the same")
	line := fmt.Sprintf("%s %s producer=%d/%d previous=%d", key.TransactionalID, State(v.State), v.ProducerID, v.ProducerEpoch, v.PreviousProducerID)
	if v.NextProducerID >= 0 {
		line += fmt.Sprintf(" next=%d", v.NextProducerID)
	}
	line += fmt.Sprintf(" timeout=%v", time.Duration(v.TimeoutMillis)*time.Millisecond)
	if v.ClientTransactionVersion != 0 {
		line += fmt.Sprintf(" version=%d", v.ClientTransactionVersion)
	}
	line += fmt.Sprintf(" at=%v", s.since(v.LastUpdateTimestamp))
	if v.StartTimestamp >= 0 {
		line += fmt.Sprintf(" started=%v", s.since(v.StartTimestamp))
	}
	for _, t := range v.Topics {
		for _, p := range t.Partitions {
			line += fmt.Sprintf(" %s/%d", t.Topic, p)
		}
	}
	return line
}

// since is a time in milliseconds, counted from the script's beginning.
func (s *stage) since(ms int64) time.Duration { return time.UnixMilli(ms).Sub(s.began) }

func showOutcome(what string) func(o Outcome) string {
	return func(o Outcome) string {
		if o.Err != nil {
			return what + ": " + errorName(o.Err)
		}
		return what + ": ok " + showProducer(o.Producer)
	}
}

// init ID [given=id/epoch] [new=id] [timeout=60s].
func (s *stage) init(a *args) {
	r := Init{
		ID: a.Words[0], Timeout: int32(a.Duration("timeout", time.Minute).Milliseconds()),
		Given: NoProducer(), NewID: a.Num("new", coordinator.NoProducer),
	}
	if g, ok := a.Named["given"]; ok {
		a.Words = append(a.Words, g)
		r.Given = a.producer(1)
	}
	p := coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *Promise) { m.InitProducerID(t, r, p) })
	await(s, p, showOutcome("init "+r.ID))
}

// add ID PRODUCER topic/partition... [v=0] [patience=100ms].
func (s *stage) add(a *args) {
	r := Add{ID: a.Words[0], Producer: a.producer(1), Version: int16(a.Num("v", 0)), Places: a.places(2)}
	r.Patience = a.Duration("patience", 0)
	p := coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *Promise) { m.AddPartitions(t, r, p) })
	await(s, p, showOutcome("add "+r.ID))
}

// verify ID PRODUCER topic/partition...
func (s *stage) verify(a *args) {
	r := Add{ID: a.Words[0], Producer: a.producer(1), Places: a.places(2)}
	p := coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *coordinator.Promise[Verified]) {
		m.VerifyPartitions(t, r, p)
	})
	await(s, p, func(v Verified) string {
		if v.Err != nil {
			return "verify: " + errorName(v.Err)
		}
		return fmt.Sprint("verify: ", v.In)
	})
}

// end ID PRODUCER commit|abort [v=0] [new=id].
func (s *stage) end(a *args) {
	r := End{
		ID: a.Words[0], Producer: a.producer(1), Commit: a.Words[2] == "commit",
		Version: int16(a.Num("v", 0)), NewID: a.Num("new", coordinator.NoProducer),
	}
	p := coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *Promise) { m.EndTxn(t, r, p) })
	await(s, p, showOutcome(a.Words[2]+" "+r.ID))
}

// written: the markers of all endings are there. With again, they stay to be told
// of once more.
func (s *stage) written(a *args) {
	endings := s.take(len(a.Words) == 0)
	slices.SortFunc(endings, func(a, b Ending) int { return strings.Compare(a.ID, b.ID) })
	for _, e := range endings {
		s.shard().Do(ended{e})
	}
}

// take returns the endings whose markers are not written, and forgets them if they
// are now.
func (s *stage) take(forget bool) []Ending {
	s.mu.Lock()
	defer s.mu.Unlock()
	endings := slices.Clone(s.endings)
	if forget {
		s.endings = nil
	}
	return endings
}

type ended struct{ e Ending }

func (c ended) Run(m *Machine, t *coordinator.Turn) { m.Ended(t, c.e) }
func (c ended) Fail(error)                          {}

// describe ID.
func (s *stage) describe(a *args) {
	id := a.Words[0]
	p := coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *coordinator.Promise[Description]) { m.Describe(t, id, p) })
	await(s, p, func(d Description) string {
		if d.Err != nil {
			return id + ": " + errorName(d.Err)
		}
		line := fmt.Sprintf("%s: %v %s timeout=%v", id, d.State, showProducer(d.Producer), time.Duration(d.Timeout)*time.Millisecond)
		if d.Started >= 0 {
			line += fmt.Sprintf(" started=%v", s.since(d.Started))
		}
		return strings.TrimSpace(line + " " + showPlaces(d.Places))
	})
}

// list [state=] [producer=] [longer=] [pattern=].
func (s *stage) list(a *args) {
	f := &Filter{Longer: a.Duration("longer", -1)}
	if name, ok := a.Named["state"]; ok {
		state, ok := StateNamed(name)
		require.True(s.t, ok)
		f.States = []State{state}
	}
	if _, ok := a.Named["producer"]; ok {
		f.Producers = []int64{a.Num("producer", 0)}
	}
	if pattern, ok := a.Named["pattern"]; ok {
		f.Pattern = regexp.MustCompile("^(?:" + pattern + ")$")
	}
	p := coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *coordinator.Promise[[]Listed]) { m.List(t, f, p) })
	await(s, p, func(list []Listed) string {
		var words []string
		for _, x := range list {
			words = append(words, fmt.Sprintf("%s(%d %v)", x.ID, x.Producer, x.State))
		}
		return "listed: " + strings.Join(words, " ")
	})
}

// advance DURATION.
func (s *stage) advance(a *args) {
	d, err := time.ParseDuration(a.Words[0])
	require.NoError(s.t, err)
	time.Sleep(d)
}

// restart has the partition led anew, from the log. Endings are told of again.
func (s *stage) restart(*args) {
	s.take(true)
	s.runtime.Resign(0)
	synctest.Wait()
	s.collect()
	s.lead()
}

// fail has the journal fail until mend.
func (s *stage) fail(*args) { s.log.Fail(errorOf("disk")) }

func (s *stage) mend(*args) {
	s.log.Fail(nil)
	time.Sleep(time.Second) // The shard loads again by then.
}

type errorOf string

func (e errorOf) Error() string { return string(e) }

// hold has commits wait until release.
func (s *stage) hold(*args)  { s.release = s.log.Hold() }
func (s *stage) letGo(*args) { s.release() }

// restore ID STATE PRODUCER topic/partition... [v=1]: the partition has such a
// record, and is led anew. A record of version 0 is what brokers wrote before.
func (s *stage) restore(a *args) {
	state, ok := StateNamed(a.Words[1])
	require.True(s.t, ok)
	producer := a.producer(2)
	x := &txn{
		id: a.Words[0], state: state, producer: producer.ID, epoch: producer.Epoch, previous: producer.ID,
		next: a.Num("next", coordinator.NoProducer), timeout: 60_000, version: int16(a.Num("version", 0)),
		updated: time.Now().UnixMilli(), started: time.Now().UnixMilli(), places: places{},
	}
	for _, p := range a.places(3) {
		x.places.add(p)
	}
	value := x.value()
	if a.Num("v", 1) == 0 {
		value = oldValue(x)
	}
	s.runtime.Resign(0)
	synctest.Wait()
	j, _ := s.log.Lead()
	_, err := j.Append([]coordinator.Record{{Key: keyOf(x.id), Value: value}}, nil, 0)
	require.NoError(s.t, err)
	s.seen++
	s.lead()
}

// oldValue is a record as brokers before flexible versions wrote it.
func oldValue(x *txn) []byte {
	v := kmsg.NewTxnMetadataValue()
	v.Version, v.ProducerID, v.ProducerEpoch, v.TimeoutMillis = 0, x.producer, x.epoch, x.timeout
	v.State, v.LastUpdateTimestamp, v.StartTimestamp = kmsg.TransactionState(x.state), x.updated, x.started
	for _, topic := range x.places.topics() {
		t := kmsg.NewTxnMetadataValueTopic()
		t.Topic, t.Partitions = topic, x.places[topic]
		v.Topics = append(v.Topics, t)
	}
	return v.AppendTo(nil)
}
