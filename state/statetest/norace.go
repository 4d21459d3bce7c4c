//go:build !race

package statetest

const raceEnabled = false
