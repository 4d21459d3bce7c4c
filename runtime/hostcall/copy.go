package hostcall

import "runtime"

// copied is how much is copied before other goroutines, including the garbage collector, get a chance to run: some
// 0.2 ms, or a millisecond if the system has to provide the pages.
const copied = 1 << 20

// Copy is like the builtin, which can't be interrupted, and payloads may be as large as a guest's memory: each garbage
// collection would stall the whole host, for a second per gigabyte.
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
