package wasiabi

import "crypto/rand"

// randomPiece is how much randomness is generated between two checks of Stop.
const randomPiece = 16 << 10

// random_get(buf, buf_len) fills a buffer with true randomness, whatever state
// the instance is reset to: repeating seeds would be a risk to the guest, and
// true ones are none to the host.
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
