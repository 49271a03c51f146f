// Package meta is the cluster as a value: an immutable Image of what etcd holds, the Delta between two images, and the
// layout of the keys and values that the image is read from. It is pure: it knows neither etcd nor time.
//
// # Keys
//
// All keys start with a prefix that the operator may choose (default "/mainstem/"), so that one etcd can serve several
// clusters. Below it:
//
//	cluster                       who this is: cluster id and version of the layout below
//	1/topics/<folded name>        one topic; folded: '.' is '_', so that names that collide share one key
//	1/parts/<topic id>/<chunk>    the states of up to 128 partitions; chunk = partition / 128 as 6 hex digits
//	1/configs/2/<topic id>        the configs of a topic, by id, so that they cannot survive it
//	1/configs/<type>/<name>       the configs of a broker (4, "" = cluster default), client-metrics (16), group (32)
//	1/quotas/<entity>             the client quotas of a user, client id, both, or address, see QuotaEntity.String
//	1/brokers/<node id>           a registration; its mod revision is the broker epoch
//	1/live/<node id>              who holds that id now; under the broker's lease: when it is gone, the broker is fenced
//	1/openings/<node id>          how often the broker has raised the epochs of all that it leads
//	1/deleted/<topic id>          a tombstone: this topic was deleted, these brokers may still hold its data
//	1/producer-ids                the next producer id that was not handed out
//	1/features/<name>             the level that a feature was given; without it, the feature's default
//
// A topic id is written as Kafka shows it: 22 characters of URL-safe base64. A node id is 10 decimal digits.
// "1" is the version of the layout; a key below it that is not listed here is ignored.
//
// # Values
//
// The first byte is the version of the value, 1 for all of these. A higher version gives *TooNewError, not corruption.
// uv = unsigned varint, sv = signed (zigzag) varint, str = uv length + bytes, ids = uv count + uv each.
//
//	cluster      | 1 | layout uv | cluster id str |
//	topics       | 1 | flags u8: 1 internal | topic id [16] | partitions uv | name str |
//	parts        | 1 | count uv | count partitions, one after the other:
//	                 | flags u8: 1 replicas given (else as the partition before)  2 ISR given (else = replicas)
//	                 |           4 leader given (else = first replica)  8 adding given  16 removing given
//	                 | base epoch sv | partition epoch uv |
//	                 | replicas ids? | ISR ids? | leader sv? | adding ids? | removing ids? |
//	configs      | 1 | count uv | (key str, value str)... in ascending order of keys, each once |
//	quotas       | 1 | count uv | (key str, value f64 big-endian)... in ascending order of keys, each once |
//	brokers      | 1 | flags u8: 1 cleanly stopped | incarnation [16] | rack str | listeners uv |
//	                 | (name str, host str, port uv, protocol str)... |
//	live         | 1 | incarnation [16] | owner str: the place whose lock the process holds |
//	openings     | 1 | count uv |
//	deleted      | 1 | name str | holders ids |
//	producer-ids | 1 | next uv |
//	features     | 1 | level uv |
//
// # Leader epochs
//
// A partition's leader epoch is its base epoch plus the number of openings of its leader; without a leader it is the base
// epoch. So a broker that has opened its log raises the epochs of everything that it leads with one write, whatever the
// number of partitions, and every broker computes the same epochs from its image.
// Whoever changes a leader writes a base epoch so that the sum grows, and makes the transaction depend on the
// old and the new leader's openings.
//
// # Invariants
//
//   - An Image and all that it hands out never change. A new image shares what did not change with the one before it.
//   - The image at a revision depends on the keys at that revision only, not on the path that led there.
//   - A topic shows up with all of its partitions or not at all: they are written by one transaction.
//   - A topic that is gone is deleted only if a tombstone says so. Else it is missing.
//
// Lock order: there are no locks here.
package meta
