package admin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/controller/meta"
)

// edit changes a partition behind everybody's back.
func (w *world) edit(name string, i int, change func(*meta.Image, meta.Partition) meta.Partition) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	topic := w.store.image.Topic(name)
	parts := append([]meta.Partition(nil), topic.Partitions...)
	parts[i] = change(w.store.image, parts[i])
	w.store.write(w.store.chunks(topic.ID, parts))
}

// fence ends a broker's lease.
func (w *world) fence(id int32) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.store.write([]meta.Change{{Key: w.store.keys.Live(id), Deleted: true}})
}

func (w *world) partition(name string, i int) *meta.Partition {
	return &w.store.Image().Topic(name).Partitions[i]
}

func ledBy(id int32) func(*meta.Image, meta.Partition) meta.Partition {
	return func(image *meta.Image, p meta.Partition) meta.Partition { return image.Led(p, id) }
}

// elect asks for elections; no topics means all. The results are by topic and partition.
func (w *world) elect(version int16, kind int8, topics []kmsg.ElectLeadersRequestTopic) (int16, map[string]int16) {
	req := kmsg.NewPtrElectLeadersRequest()
	req.Version, req.ElectionType, req.Topics = version, kind, topics
	resp := w.ask(req).(*kmsg.ElectLeadersResponse)
	got := map[string]int16{}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			got[fmt.Sprintf("%s-%d", t.Topic, p.Partition)] = p.ErrorCode
			assert.Equal(w.t, p.ErrorCode == 0, p.ErrorMessage == nil, "an error says why")
		}
	}
	return resp.ErrorCode, got
}

func TestLeadersAreElected(t *testing.T) {
	w := newWorld(t, "", broker(1, ""), broker(2, ""), broker(3, ""))
	w.assign("t", []int32{1, 2}, []int32{2, 1}, []int32{3, 1})
	w.assign("v", []int32{3})
	w.edit("t", 0, ledBy(2))
	w.fence(3)
	all := []kmsg.ElectLeadersRequestTopic{{Topic: "t", Partitions: []int32{0, 1, 2, 4, -1}}, {Topic: "v", Partitions: []int32{0}}, {Topic: "nope", Partitions: []int32{0}}}

	code, got := w.elect(2, 1, all[:2])
	assert.Zero(t, code)
	assert.Equal(t, map[string]int16{"t-0": 84, "t-1": 84, "t-2": 0, "v-0": 83, "t-4": 3, "t--1": 3}, got)
	assert.Equal(t, int32(1), w.partition("t", 2).Leader, "the living one in sync")
	assert.Equal(t, []int32{3, 1}, w.partition("t", 2).ISR)

	code, got = w.elect(0, 1, all) // The kind is not in this version.
	assert.Zero(t, code)
	assert.Equal(t, map[string]int16{"t-0": 0, "t-1": 84, "t-2": 80, "v-0": 80, "t-4": 3, "t--1": 3, "nope-0": 3}, got)
	assert.Equal(t, int32(1), w.partition("t", 0).Leader)
	assert.Equal(t, int32(2), w.partition("t", 0).LeaderEpoch, "it was led by two others before")

	code, got = w.elect(2, 7, all[:2])
	assert.Equal(t, int16(42), code)
	assert.Equal(t, int16(42), got["v-0"])
}

func TestElectionsOfAllLeaveOutWhatNeedsNone(t *testing.T) {
	w := newWorld(t, "", broker(1, ""), broker(2, ""))
	w.assign("t", []int32{1, 2}, []int32{2, 1})
	w.assign("v", []int32{2})
	w.edit("t", 0, ledBy(2))
	code, got := w.elect(1, 0, nil)
	assert.Zero(t, code)
	assert.Equal(t, map[string]int16{"t-0": 0}, got)
	w.fence(2)
	_, got = w.elect(2, 0, nil)
	assert.Equal(t, map[string]int16{"t-1": 0, "v-0": 80}, got)
	_, got = w.elect(2, 1, nil)
	assert.Equal(t, map[string]int16{"v-0": 83}, got)
	_, got = w.elect(2, 0, []kmsg.ElectLeadersRequestTopic{})
	assert.Empty(t, got, "none is not all")
}

// move asks for other replicas; nil takes a move back. The results are by topic and partition.
func (w *world) move(mayResize bool, topic string, targets map[int32][]int32) map[int32]int16 {
	req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	req.Version, req.AllowReplicationFactorChange = 1, mayResize
	row := kmsg.NewAlterPartitionAssignmentsRequestTopic()
	row.Topic = topic
	for i, target := range targets {
		p := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
		p.Partition, p.Replicas = i, target
		row.Partitions = append(row.Partitions, p)
	}
	req.Topics = append(req.Topics, row)
	resp := w.ask(req).(*kmsg.AlterPartitionAssignmentsResponse)
	require.Zero(w.t, resp.ErrorCode)
	assert.Equal(w.t, mayResize, resp.AllowReplicationFactorChange)
	got := map[int32]int16{}
	for _, p := range resp.Topics[0].Partitions {
		got[p.Partition] = p.ErrorCode
	}
	return got
}

// moves are the moves under way, as clients see them.
func (w *world) moves() (lines []string) {
	for _, t := range w.ask(kmsg.NewPtrListPartitionReassignmentsRequest()).(*kmsg.ListPartitionReassignmentsResponse).Topics {
		for _, p := range t.Partitions {
			lines = append(lines, fmt.Sprintf("%s-%d %v adding %v removing %v", t.Topic, p.Partition, p.Replicas, p.AddingReplicas, p.RemovingReplicas))
		}
	}
	return lines
}

func TestReplicasMove(t *testing.T) {
	w := newWorld(t, "", broker(1, ""), broker(2, ""), fenced(broker(3, "")))
	w.assign("t", []int32{1, 2}, []int32{1, 2}, []int32{1, 2})
	assert.Equal(t, map[int32]int16{0: 0}, w.move(true, "t", map[int32][]int32{0: {1}}))
	got := w.move(true, "t", map[int32][]int32{0: {1, 3}, 1: {2}, 2: {2, 1}, 3: {1}, -1: nil})
	assert.Equal(t, map[int32]int16{0: 0, 1: 0, 2: 0, 3: 3, -1: 3}, got)
	assert.Equal(t, []string{"t-0 [1 3] adding [3] removing []"}, w.moves(), "what waits for nobody is done")
	assert.Equal(t, int32(2), w.partition("t", 1).Leader)
	assert.Equal(t, []int32{2, 1}, w.partition("t", 2).Replicas)

	more := kmsg.NewPtrCreatePartitionsRequest()
	more.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: "t", Count: 5}}
	assert.Equal(t, int16(60), w.ask(more).(*kmsg.CreatePartitionsResponse).Topics[0].ErrorCode)
	assert.Equal(t, map[int32]int16{0: 0, 1: 85}, w.move(true, "t", map[int32][]int32{0: nil, 1: nil}))
	assert.Empty(t, w.moves())
	assert.Equal(t, []int32{1}, w.partition("t", 0).Replicas)
}

func TestReplicasThatCannotBe(t *testing.T) {
	w := newWorld(t, "", broker(1, ""), broker(2, ""))
	w.assign("t", []int32{1}, []int32{1}, []int32{1}, []int32{1}, []int32{1})
	got := w.move(false, "t", map[int32][]int32{0: {}, 1: {1, 1}, 2: {77}, 3: {1, 2}, 4: {2}})
	assert.Equal(t, map[int32]int16{0: 39, 1: 39, 2: 39, 3: 38, 4: 0}, got)
	assert.Equal(t, map[int32]int16{4: 38}, w.move(false, "t", map[int32][]int32{4: {1, 2}}), "its size is what it will be")
	assert.Equal(t, map[int32]int16{0: 3}, w.move(true, "nope", map[int32][]int32{0: {1}}))
	for i, p := range w.store.Image().Topic("t").Partitions[:4] {
		assert.Zero(t, p.PartitionEpoch, i)
	}
}

func TestAMoveIsNotTakenBackWithLoss(t *testing.T) {
	w := newWorld(t, "", broker(1, ""), broker(2, ""))
	w.assign("t", []int32{1})
	w.edit("t", 0, func(image *meta.Image, p meta.Partition) meta.Partition {
		p.Replicas, p.ISR, p.Adding, p.Removing = []int32{2, 1}, []int32{2}, []int32{2}, []int32{1}
		return image.Led(p, 2)
	})
	assert.Equal(t, map[int32]int16{0: 39}, w.move(true, "t", map[int32][]int32{0: nil}))
	w.mustAlter(topicType, "t", "unclean.leader.election.enable=true")
	assert.Equal(t, map[int32]int16{0: 0}, w.move(true, "t", map[int32][]int32{0: nil}))
	assert.Equal(t, int32(1), w.partition("t", 0).Leader)
}

func TestReplicasAreInTheOneDirectory(t *testing.T) {
	w := newWorld(t, "", broker(1, ""), broker(2, ""))
	w.assign("t", []int32{1}, []int32{2})
	long := strings.Repeat("n", 250)
	req := kmsg.NewPtrAlterReplicaLogDirsRequest()
	dir := func(name, topic string, partitions ...int32) {
		req.Dirs = append(req.Dirs, kmsg.AlterReplicaLogDirsRequestDir{Dir: name, Topics: []kmsg.AlterReplicaLogDirsRequestDirTopic{{Topic: topic, Partitions: partitions}}})
	}
	dir("/data", "t", 0, 1, 2, -1)
	dir("/other", "u", 0)
	dir("/data", "u", 0, 1)
	dir("/data/", "v", 0)
	dir("/data", long, 0)
	for req.Version = 1; req.Version <= 2; req.Version++ {
		got := map[string]int16{}
		for _, topic := range w.ask(req).(*kmsg.AlterReplicaLogDirsResponse).Topics {
			for _, p := range topic.Partitions {
				got[fmt.Sprintf("%s-%d", topic.Topic, p.Partition)] = p.ErrorCode
			}
		}
		assert.Equal(t, map[string]int16{"t-0": 0, "t-1": 6, "t-2": 3, "t--1": 3, "u-0": 3, "u-1": 3, "v-0": 57, long + "-0": 17}, got)
	}
}
