// Package config knows every setting of the broker: its name, type, default,
// bounds, synonyms, and whether it may change while the broker runs.
package config
