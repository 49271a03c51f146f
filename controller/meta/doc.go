// Package meta is the cluster as a value: an immutable Image of what etcd holds, the Delta between two images,
// and the layout of the keys and values that the image is read from.
package meta
