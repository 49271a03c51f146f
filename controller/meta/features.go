package meta

// Feature is something that clusters may have at different levels, so that
// brokers and clients agree on what they use.
type Feature struct {
	Name string
	// Min and Max are the levels that this version can do. Level 0 means that
	// the feature is not there.
	Min, Max int16
	// Default is the level of a cluster that nobody has given another. It must not
	// be raised: brokers of two versions would disagree on it.
	Default int16
}

// The features that this version knows. MetadataVersion stands for what Apache
// Kafka 4.3 can do; nothing here depends on its level.
const (
	MetadataVersion    = "metadata.version"
	GroupVersion       = "group.version"       // From 1 on: consumer groups by heartbeat.
	TransactionVersion = "transaction.version" // From 2 on: each transaction raises the producer's epoch.
)

// UnstableMetadataVersion is the level that Apache Kafka 4.3 has with unstable.feature.versions.enable.
const UnstableMetadataVersion = 31

// Features lists what this version can do, with or without the levels that Kafka counts as unstable.
func Features(unstable bool) []Feature {
	all := []Feature{
		{Name: MetadataVersion, Min: 7, Max: 30, Default: 30},
		{Name: GroupVersion, Max: 1, Default: 1},
		{Name: TransactionVersion, Max: 2, Default: 2},
	}
	if unstable {
		all[0].Max = UnstableMetadataVersion
	}
	return all
}

// Level is the level at which the cluster has a feature, 0 for one that is unknown.
func (i *Image) Level(name string) int16 {
	if level, ok := i.features[name]; ok {
		return level
	}
	for _, f := range Features(false) {
		if f.Name == name {
			return f.Default
		}
	}
	return 0
}
