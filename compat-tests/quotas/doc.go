// Package quotas sees whether a broker holds clients to their quotas: with real
// clients that wait as they are told, and by hand with clients that do not. Windows
// are shorter than Kafka's default, so that a test takes seconds; times are bounded
// from below only, since a machine may be slow.
package quotas
