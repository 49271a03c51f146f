package protocol

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// apiVersions answers ApiVersions from the table.
func (t *apiTable) apiVersions(c *Call) Finish {
	req := c.Request.(*kmsg.ApiVersionsRequest)
	resp := req.ResponseKind().(*kmsg.ApiVersionsResponse)
	if req.Version >= 3 {
		if !softwareName(req.ClientSoftwareName) || !softwareName(req.ClientSoftwareVersion) {
			resp.ErrorCode = kerr.InvalidRequest.Code
			return c.Answer(resp)
		}
		c.Conn.software.Store(&software{req.ClientSoftwareName, req.ClientSoftwareVersion})
	}
	resp.ApiKeys = t.shown
	if req.Version >= 3 && t.features != nil {
		describeFeatures(resp, t.features())
	}
	return c.Answer(resp)
}

// describeFeatures fills the tagged fields. Up to version 3 a feature that may
// be off is left out: older Java clients fail on a lowest level of 0. Finalized
// features at level 0 are off, and no level is given for them.
func describeFeatures(resp *kmsg.ApiVersionsResponse, f Features) {
	for _, s := range f.Supported {
		if resp.Version <= 3 && s.Min == 0 {
			continue
		}
		k := kmsg.NewApiVersionsResponseSupportedFeature()
		k.Name, k.MinVersion, k.MaxVersion = s.Name, s.Min, s.Max
		resp.SupportedFeatures = append(resp.SupportedFeatures, k)
	}
	for _, s := range f.Finalized {
		if s.Level == 0 {
			continue
		}
		k := kmsg.NewApiVersionsResponseFinalizedFeature()
		k.Name, k.MinVersionLevel, k.MaxVersionLevel = s.Name, s.Level, s.Level
		resp.FinalizedFeatures = append(resp.FinalizedFeatures, k)
	}
	resp.FinalizedFeaturesEpoch = f.Epoch
}

// unknownVersion answers an ApiVersions request of a version that is not known:
// in the layout of version 0, which every client can read, and with the one row
// that it needs to ask again.
func (t *apiTable) unknownVersion(c *Call) Finish {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.ErrorCode = kerr.UnsupportedVersion.Code
	for _, k := range t.shown {
		if k.ApiKey == keyApiVersions {
			resp.ApiKeys = append(resp.ApiKeys, k)
		}
	}
	c.Version = 0
	return c.Answer(resp)
}

// softwareName says whether a client's software name or version is one:
// letters, digits, and inside of it dots and dashes.
func softwareName(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case (c == '.' || c == '-') && i > 0 && i < len(s)-1:
		default:
			return false
		}
	}
	return s != ""
}
