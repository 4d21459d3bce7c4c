//go:build race

package payloadtest

// largeBytes is less than without the race detector, which is slow.
const largeBytes = 60 << 20
