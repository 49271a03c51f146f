package admin

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/controller/meta"
)

// update is one line of an UpdateFeatures request.
type update struct {
	name  string
	level int16
	kind  int8
}

func (w *world) updateAs(version int16, validateOnly bool, updates ...update) (int16, []string) {
	req := kmsg.NewPtrUpdateFeaturesRequest()
	req.Version, req.ValidateOnly = version, validateOnly
	for _, u := range updates {
		req.FeatureUpdates = append(req.FeatureUpdates, kmsg.UpdateFeaturesRequestFeatureUpdate{
			Feature: u.name, MaxVersionLevel: u.level, UpgradeType: u.kind, AllowDowngrade: u.kind > upgrade,
		})
	}
	resp := w.ask(req).(*kmsg.UpdateFeaturesResponse)
	assert.Equal(w.t, resp.ErrorCode == 0, resp.ErrorMessage == nil)
	var rows []string
	for _, r := range resp.Results {
		rows = append(rows, fmt.Sprintf("%s %d", r.Feature, r.ErrorCode))
	}
	return resp.ErrorCode, rows
}

func TestFeaturesAreJudged(t *testing.T) {
	w := newWorld(t, "")
	for _, c := range []struct {
		code    int16
		updates []update
	}{
		{0, nil},
		{0, []update{{meta.GroupVersion, 1, 1}}},
		{0, []update{{meta.GroupVersion, 1, 2}}},
		{0, []update{{meta.GroupVersion, 0, 2}}},
		{0, []update{{meta.GroupVersion, 0, 3}}},
		{0, []update{{meta.MetadataVersion, 30, 1}}},
		{0, []update{{meta.GroupVersion, 1, 2}, {meta.GroupVersion, 1, 1}}},
		{95, []update{{meta.GroupVersion, 0, 1}}}, // A downgrade must be asked for as one.
		{95, []update{{meta.GroupVersion, 2, 1}}},
		{95, []update{{meta.GroupVersion, -1, 2}}},
		{95, []update{{meta.GroupVersion, 1, 0}}},
		{95, []update{{meta.GroupVersion, 1, 4}}},
		{95, []update{{"", 1, 1}}},
		{95, []update{{"unknown", 0, 2}}},
		{95, []update{{meta.MetadataVersion, 0, 2}}},
		{95, []update{{meta.MetadataVersion, 29, 2}}}, // Never lowered.
		{95, []update{{meta.MetadataVersion, 29, 3}}},
		{95, []update{{meta.TransactionVersion, 1, 2}, {"unknown", 1, 1}}},
	} {
		for version := int16(1); version <= 2; version++ {
			code, rows := w.updateAs(version, true, c.updates...)
			assert.Equal(t, c.code, code, "v%d %v", version, c.updates)
			if version == 1 && code == 0 {
				assert.Len(t, rows, len(c.updates))
			} else {
				assert.Empty(t, rows)
			}
		}
	}
	assert.Empty(t, w.store.Image().Features(), "nothing was changed")
}

func TestFeaturesChangeTogether(t *testing.T) {
	w := newWorld(t, "")
	code, _ := w.updateAs(2, false, update{meta.GroupVersion, 0, 2}, update{meta.TransactionVersion, 3, 1})
	assert.Equal(t, int16(95), code)
	assert.EqualValues(t, 1, w.store.Image().Level(meta.GroupVersion), "not without the other")
	code, rows := w.updateAs(0, false, update{meta.GroupVersion, 0, 2}, update{meta.TransactionVersion, 1, 2}, update{meta.MetadataVersion, 30, 1})
	assert.Zero(t, code)
	assert.Equal(t, []string{"group.version 0", "transaction.version 0", "metadata.version 0"}, rows)
	assert.Equal(t, map[string]int16{meta.GroupVersion: 0, meta.TransactionVersion: 1}, w.store.Image().Features())
	code, _ = w.updateAs(2, false, update{meta.GroupVersion, 1, 2})
	assert.Equal(t, int16(95), code, "an upgrade must be asked for as one")
	code, _ = w.updateAs(2, false, update{meta.GroupVersion, 1, 1})
	assert.Zero(t, code)
	assert.EqualValues(t, 1, w.store.Image().Level(meta.GroupVersion))
}

func TestBrokersAreForgotten(t *testing.T) {
	w := newWorld(t, "", broker(1, ""), fenced(broker(2, "")))
	for id, want := range map[int32]int16{-1: 102, 77: 102, 2: 0} {
		req := kmsg.NewPtrUnregisterBrokerRequest()
		req.BrokerID = id
		resp := w.ask(req).(*kmsg.UnregisterBrokerResponse)
		assert.Equal(t, want, resp.ErrorCode, id)
		assert.NotNil(t, resp.ErrorMessage)
	}
	assert.Nil(t, w.store.Image().Broker(2))
	assert.NotNil(t, w.store.Image().Broker(1))
}

func TestUnstableLevelsAreSupportedWhenAskedFor(t *testing.T) {
	code, _ := newWorld(t, "").updateAs(1, true, update{meta.MetadataVersion, 31, 1})
	assert.EqualValues(t, 95, code)
	w := newWorld(t, "unstable.feature.versions.enable=true")
	code, _ = w.updateAs(1, false, update{meta.MetadataVersion, 31, 1})
	assert.Zero(t, code)
	assert.EqualValues(t, 31, w.store.Image().Level(meta.MetadataVersion))
	code, _ = w.updateAs(1, false, update{meta.MetadataVersion, 30, 3})
	assert.EqualValues(t, 95, code)
}
