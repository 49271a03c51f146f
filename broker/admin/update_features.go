package admin

import (
	"maps"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/mainstem/mainstem/broker/config"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/protocol"
)

// Kinds of changes of a feature's level.
const (
	upgrade         = 1
	safeDowngrade   = 2
	unsafeDowngrade = 3
)

// updateFeatures changes the levels of features, all that are asked for or none.
func (h *Handlers) updateFeatures(c *protocol.Call, req *kmsg.UpdateFeaturesRequest, answer *kmsg.UpdateFeaturesResponse) {
	ctx, cancel := deadline(c, req.TimeoutMillis)
	defer cancel()
	known := meta.Features(h.opts.Live.Bool(config.UnstableFeatures))
	var levels map[string]int16
	judged := func(image *meta.Image) (_ map[string]int16, err error) {
		levels, err = newLevels(image, req, known)
		return levels, err
	}
	var err error
	if req.Version > 0 && req.ValidateOnly {
		_, err = judged(h.opts.Controller.Image())
	} else if err = h.opts.Controller.UpdateFeatures(ctx, judged); err == nil && len(levels) > 0 {
		h.opts.Logger.Info("features changed", zap.Any("levels", levels))
	}
	if answer.ErrorCode, answer.ErrorMessage = code(c, err); err != nil || req.Version > 1 {
		return
	}
	for _, u := range req.FeatureUpdates {
		row := kmsg.NewUpdateFeaturesResponseResult()
		row.Feature, row.ErrorMessage = u.Feature, textOf("NONE")
		answer.Results = append(answer.Results, row)
	}
}

// newLevels judges what is asked for; the last one counts of those that name the same feature.
func newLevels(image *meta.Image, req *kmsg.UpdateFeaturesRequest, all []meta.Feature) (map[string]int16, error) {
	asked := map[string]kmsg.UpdateFeaturesRequestFeatureUpdate{}
	for _, u := range req.FeatureUpdates {
		if req.Version == 0 {
			u.UpgradeType = upgrade
			if u.AllowDowngrade {
				u.UpgradeType = safeDowngrade
			}
		}
		asked[u.Feature] = u
	}
	levels := map[string]int16{}
	for _, u := range req.FeatureUpdates {
		u = asked[u.Feature]
		if err := checkLevel(image, u, all); err != nil {
			return nil, err
		}
		levels[u.Feature] = u.MaxVersionLevel
	}
	maps.DeleteFunc(levels, func(name string, level int16) bool { return level == image.Level(name) })
	return levels, nil
}

func checkLevel(image *meta.Image, u kmsg.UpdateFeaturesRequestFeatureUpdate, all []meta.Feature) error {
	name, next, now := clip(u.Feature), u.MaxVersionLevel, image.Level(u.Feature)
	no := func(format string, args ...any) error {
		return refuse(kerr.InvalidUpdateVersion, "nothing was changed: "+format, args...)
	}
	var known *meta.Feature
	for _, f := range all {
		if f.Name == u.Feature {
			known = &f
		}
	}
	switch {
	case u.UpgradeType < upgrade || u.UpgradeType > unsafeDowngrade:
		return no("feature %s: upgrade type %d is unknown", name, u.UpgradeType)
	case next < 0:
		return no("feature %s: level %d is less than 0", name, next)
	case known == nil:
		return no("feature %q is unknown to this broker, which does not support it", name)
	case next < known.Min || next > known.Max:
		return no("feature %s: level %d is not supported; this broker supports the levels %d to %d", name, next, known.Min, known.Max)
	case next < now && u.UpgradeType == upgrade:
		return no("feature %s: level %d is less than %d, which it has: that is a downgrade and must be asked for as one", name, next, now)
	case next > now && u.UpgradeType != upgrade:
		return no("feature %s: level %d is more than %d, which it has: that is an upgrade and must be asked for as one", name, next, now)
	case next < now && u.Feature == meta.MetadataVersion:
		return no("feature %s: the level cannot be lowered from %d to %d, since metadata might be lost", name, now, next)
	}
	return nil
}
