package wasiabi

import "crypto/rand"

// randomPiece is how much randomness is made between two looks at Stop.
const randomPiece = 16 << 10

// random_get(buf, buf_len) fills a buffer with true randomness, whatever the
// instance is reset to: seeds that repeat are a risk to the guest, and these
// are none to the host.
func randomGet(s *System, m memory, a args) Errno {
	b, e := m.view(a.u32(0), uint64(a.u32(1)))
	if e != OK {
		return e
	}
	for len(b) > 0 {
		n := min(len(b), randomPiece)
		if _, err := rand.Read(b[:n]); err != nil {
			return EIO
		}
		if b = b[n:]; len(b) > 0 && s.stopped() {
			return EINTR
		}
	}
	return OK
}
