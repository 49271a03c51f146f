// Package kgosuite runs franz-go's own tests of its client, as they lie in the
// module cache, against the broker: classic groups, groups of the consumer
// protocol, exactly once.
package kgosuite
