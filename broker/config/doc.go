// Package config knows every setting of the broker: its name, type, default
// and bounds, the names that stand in for it, and whether it may change while
// the broker runs. The names are Kafka's; those under mainstem. and etcd. are
// our own.
//
// A setting has layers, the strongest first:
//
//	topic or group   its own settings                        source 1, 8 or 7
//	this broker      set while running, for one broker       source 2
//	the cluster      set while running, for all brokers      source 3
//	start            file < KAFKA_… environment < overrides  source 4
//	default          the tables in this package              source 5
//
// Static holds the two lowest layers, Live all that concern the broker. The
// numbers are those that DescribeConfigs shows.
//
// # Invariants
//
//   - The tables never change after start.
//   - A Static, a Values and a Topic are immutable once handed out.
//   - What Live shows is valid: a stored setting that does not pass the checks
//     of this version is left out and reported by Apply.
//   - Every value is kept as it was written and shown as it was understood
//     (" +5 " is shown as 5).
//
// # Lock order
//
// Live has one mutex, held while a new snapshot is made and the hooks are
// called; readers take no lock.
package config
