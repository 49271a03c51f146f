// Package controller keeps the cluster's metadata in etcd, embedded in the process or external, and shows it as a
// meta.Image: registration under a lease, topics, partitions, configs, producer ids.
package controller
