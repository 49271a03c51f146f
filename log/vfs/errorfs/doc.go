// Package errorfs wraps a filesystem and makes chosen operations fail, counts all of them, and can make syncs do nothing,
// so that tests of crash safety can be shown to notice.
package errorfs
