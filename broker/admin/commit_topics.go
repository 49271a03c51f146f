package admin

import (
	"context"

	"go.uber.org/zap"

	"github.com/mainstem/mainstem/controller"
	"github.com/mainstem/mainstem/controller/meta"
)

// commitTopics creates the plans that have no error so far, and logs what came of it.
func (h *Handlers) commitTopics(ctx context.Context, plans []topicPlan) {
	var topics []controller.NewTopic
	var at []int
	for i := range plans {
		if plans[i].err == nil {
			topics = append(topics, plans[i].NewTopic)
			at = append(at, i)
		}
	}
	if len(topics) == 0 {
		return
	}
	for i, err := range h.opts.Controller.CreateTopics(ctx, topics) {
		p := &plans[at[i]]
		p.NewTopic, p.err = topics[i], err
		if err == nil {
			h.opts.Logger.Info("topic created", zap.String("topic", p.Name), zap.String("id", meta.FormatID(p.ID)), zap.Int("partitions", len(p.Assignments)),
				zap.Int("replicas", len(p.Assignments[0])), zap.Any("configs", p.Configs))
		}
	}
}
