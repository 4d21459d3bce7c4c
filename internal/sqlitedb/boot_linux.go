package sqlitedb

import (
	"crypto/rand"
	"crypto/sha256"
	"os"
)

// bootID is another one each time the machine is started.
func bootID() (id [16]byte) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		_, _ = rand.Read(id[:]) // never fails
		return id
	}
	sum := sha256.Sum256(text)
	return [16]byte(sum[:])
}
