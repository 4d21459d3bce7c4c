//go:build !race

package payloadtest

// largeBytes is how much passes as one object.
const largeBytes = 128 << 20
