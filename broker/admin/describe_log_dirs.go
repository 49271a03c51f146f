package admin

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/protocol"
)

func (h *Handlers) describeLogDirs(_ *protocol.Call, req *kmsg.DescribeLogDirsRequest, answer *kmsg.DescribeLogDirsResponse) {
	dir := kmsg.NewDescribeLogDirsResponseDir()
	dir.Dir = h.opts.LogDir
	dir.IsCordoned = len(h.opts.Live.List("cordoned.log.dirs")) > 0
	if free, total := h.opts.Space(); req.Version >= 4 {
		dir.TotalBytes, dir.UsableBytes = int64(total), int64(free)
	}
	image := h.opts.Controller.Image()
	if req.Topics == nil {
		for topic := range image.Topics() {
			dir.Topics = h.appendSizes(dir.Topics, topic, nil)
		}
	} else {
		asked := map[string][]int32{}
		for _, t := range req.Topics {
			asked[t.Topic] = append(asked[t.Topic], t.Partitions...)
		}
		for _, name := range slices.Sorted(maps.Keys(asked)) {
			if topic := image.Topic(name); topic != nil {
				parts := asked[name]
				slices.Sort(parts)
				dir.Topics = h.appendSizes(dir.Topics, topic, slices.Compact(parts))
			}
		}
	}
	answer.Dirs = append(answer.Dirs, dir)
}

// appendSizes adds the partitions of a topic that are here; nil means all of them.
func (h *Handlers) appendSizes(rows []kmsg.DescribeLogDirsResponseDirTopic, topic *meta.Topic, parts []int32) []kmsg.DescribeLogDirsResponseDirTopic {
	row := kmsg.NewDescribeLogDirsResponseDirTopic()
	row.Topic = topic.Name
	add := func(i int32) {
		bytes, lag, here := h.opts.Size(topic.ID, i)
		if !here {
			return
		}
		p := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
		p.Partition, p.Size, p.OffsetLag = i, bytes, lag
		row.Partitions = append(row.Partitions, p)
	}
	if parts == nil {
		for i := range topic.Partitions {
			add(int32(i))
		}
	}
	for _, i := range parts {
		if i >= 0 && int(i) < len(topic.Partitions) {
			add(i)
		}
	}
	if len(row.Partitions) == 0 {
		return rows
	}
	return append(rows, row)
}
