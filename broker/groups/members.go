package groups

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group"
)

// Members tells of the members of all groups that this broker coordinates.
func (h *Handlers) Members(ctx context.Context) ([]group.Member, error) {
	var promises []*coordinator.Promise[[]group.Member]
	for _, s := range h.runtime.Shards() {
		promises = append(promises, coordinator.Ask(s,
			func(m *group.Machine, t *coordinator.Turn, p *coordinator.Promise[[]group.Member]) { m.Members(t, p) }))
	}
	var all []group.Member
	for _, p := range promises {
		members, err := p.Wait(ctx, nil)
		if err != nil && !errors.Is(err, kerr.NotCoordinator) {
			return nil, err
		}
		all = append(all, members...)
	}
	return all, nil
}
