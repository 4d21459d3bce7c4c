//go:build race

package statetest

// raceEnabled makes the suite smaller: under the race detector a store written
// in Go, SQLite included, is ten times slower.
const raceEnabled = true
