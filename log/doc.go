// Package log is the store: every partition of a broker is a light queue over
// one shared commitlog.
package log
