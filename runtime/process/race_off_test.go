//go:build !race

package process_test

// raceFactor is how many times more memory the race detector takes.
const raceFactor = 1
