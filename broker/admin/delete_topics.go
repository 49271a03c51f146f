package admin

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/protocol"
)

// deletion is one topic of a request on its way.
type deletion struct {
	name *string
	id   meta.TopicID
	err  error
	// partitions is how many there are to delete.
	partitions int
}

func (h *Handlers) deleteTopics(c *protocol.Call, req *kmsg.DeleteTopicsRequest, answer *kmsg.DeleteTopicsResponse) {
	image := h.opts.Controller.Image()
	list := planDeletions(image, req)
	if !h.opts.Live.Values().DeleteTopics {
		forbid(list, req.Version)
	}
	q := h.mutations(c, deleteStrictSince)
	ctx, cancel := deadline(c, req.TimeoutMillis)
	defer cancel()
	var ids []meta.TopicID
	var at []int
	for i, d := range list {
		if d.err == nil && !q.Take(d.partitions) {
			list[i].err = errThrottled
		} else if d.err == nil {
			ids = append(ids, d.id)
			at = append(at, i)
		}
	}
	if len(ids) > 0 {
		for i, err := range h.opts.Controller.DeleteTopics(ctx, ids) {
			list[at[i]].err = err
			if err == nil {
				h.opts.Logger.Info("topic deleted", zap.Stringp("topic", list[at[i]].name), zap.String("id", meta.FormatID(ids[i])))
			}
		}
	}
	c.Throttle(q.Throttle())
	for _, d := range list {
		row := kmsg.NewDeleteTopicsResponseTopic()
		row.Topic, row.TopicID = d.name, d.id
		if row.Topic == nil && req.Version < 6 {
			row.Topic = new(string)
		}
		row.ErrorCode, row.ErrorMessage = code(c, d.err)
		answer.Topics = append(answer.Topics, row)
	}
}

func forbid(list []deletion, version int16) {
	kind := kerr.TopicDeletionDisabled
	if version < 3 {
		kind = kerr.InvalidRequest // Older clients do not know the other.
	}
	for i := range list {
		list[i].err = refuse(kind, "topics cannot be deleted: delete.topic.enable is false")
	}
}

// planDeletions finds the topics of a request, one row each.
func planDeletions(image *meta.Image, req *kmsg.DeleteTopicsRequest) []deletion {
	asked := req.Topics
	for i := range req.TopicNames {
		t := kmsg.NewDeleteTopicsRequestTopic()
		t.Topic = &req.TopicNames[i]
		asked = append(asked, t)
	}
	names, ids := map[string]int{}, map[meta.TopicID]int{}
	for _, t := range asked {
		switch none := (meta.TopicID{}); {
		case t.Topic != nil && t.TopicID == none:
			names[*t.Topic]++
		case t.Topic == nil && t.TopicID != none:
			ids[t.TopicID]++
		}
	}
	var list []deletion
	for _, t := range asked {
		list = appendDeletion(list, image, t, names, ids)
	}
	return list
}

func appendDeletion(list []deletion, image *meta.Image, t kmsg.DeleteTopicsRequestTopic, names map[string]int, ids map[meta.TopicID]int) []deletion {
	none := meta.TopicID{}
	switch {
	case t.Topic == nil && t.TopicID == none:
		return append(list, deletion{err: refuse(kerr.InvalidRequest, "neither a topic name nor a topic id is given")})
	case t.Topic != nil && t.TopicID != none:
		return append(list, deletion{name: t.Topic, id: t.TopicID, err: refuse(kerr.InvalidRequest, "give a topic name or a topic id, not both")})
	case t.Topic != nil:
		return appendByName(list, image, *t.Topic, names)
	}
	n := ids[t.TopicID]
	if n == 0 {
		return list // Its row is there.
	}
	ids[t.TopicID] = 0
	d := deletion{id: t.TopicID}
	topic := image.TopicByID(t.TopicID)
	switch {
	case n > 1:
		d.err = refuse(kerr.InvalidRequest, "the topic id is in the request more than once")
	case topic == nil:
		d.err = refuse(kerr.UnknownTopicID, "no topic has this id")
	default:
		d.name, d.partitions = &topic.Name, len(topic.Partitions)
		if names[topic.Name] > 0 {
			d.err = refuse(kerr.InvalidRequest, "the topic is in the request by name and by id")
			names[topic.Name] = 0
		}
	}
	return append(list, d)
}

func appendByName(list []deletion, image *meta.Image, name string, names map[string]int) []deletion {
	n := names[name]
	if n == 0 {
		return list // Its row is there.
	}
	names[name] = 0
	d := deletion{name: &name}
	topic := image.Topic(name)
	switch {
	case n > 1:
		d.err = refuse(kerr.InvalidRequest, "the topic name is in the request more than once")
	case topic == nil:
		d.err = refuse(kerr.UnknownTopicOrPartition, "topic %q does not exist", clip(name))
	default:
		d.id, d.partitions = topic.ID, len(topic.Partitions)
	}
	return append(list, d)
}
