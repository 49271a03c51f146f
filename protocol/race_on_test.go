//go:build race

package protocol

// raceEnabled says that pools drop things at random, so that allocations cannot
// be counted.
const raceEnabled = true
