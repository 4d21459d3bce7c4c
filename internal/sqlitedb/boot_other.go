//go:build !linux

package sqlitedb

import "crypto/rand"

// bootID is unknown here. What a crash has left then counts as what a loss of
// power has left.
func bootID() (id [16]byte) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}
