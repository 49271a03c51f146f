// Package commitlog is the shared log of a broker: one append stream of frames with opaque payloads, kept in many segments.
package commitlog
