package hostcall

import "runtime"

// copied is how much is copied before other goroutines, the garbage collector among them, may go on: some 0.2 ms, or
// a millisecond where the system has to fetch the pages.
const copied = 1 << 20

// Copy copies as the builtin does. That can't be interrupted, and payloads may be as large as a guest's memory: at each
// garbage collection the whole host would wait, a second for a gigabyte.
func Copy(to, from []byte) int {
	n := min(len(to), len(from))
	for at := 0; at < n; at += copied {
		if at > 0 {
			runtime.Gosched()
		}
		copy(to[at:min(at+copied, n)], from[at:])
	}
	return n
}
