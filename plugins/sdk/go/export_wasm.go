//go:build wasip1

package jobhost

import (
	"runtime"
	"unsafe"
)

// Go's collector doesn't move what it keeps, so that addresses given to the
// host stay good as long as something here points to them.
var (
	// firstBox is the mailbox until an input is larger. It is in the module's
	// data, so that a sandbox that is put back to its beginning has it still.
	firstBox [64 << 10]byte
	// mailbox is where the host writes the input. It is used again for every
	// job, and grows with the largest of them.
	mailbox = firstBox[:]
	// current is the job under way: a variable, so that jobs allocate nothing.
	current Job
	// result is what the host reads after an entry returned.
	result []byte
)

// The goroutines of Go's runtime itself have not run yet when a package is
// initialised, and nothing else lets them before the first job. They begin here,
// or each job in a pristine sandbox would begin them again: 1.5 µs of its 8.
func init() { runtime.Gosched() }

//go:wasmexport jh_buf
func jhBuf(least uint32) unsafe.Pointer {
	if int(least) > len(mailbox) {
		mailbox = nil // may go before the new one is made
		// A quarter more than is needed: sizes that rise slowly shouldn't
		// leave a dead mailbox each.
		mailbox = make([]byte, least+least/4)
	}
	return unsafe.Pointer(unsafe.SliceData(mailbox))
}

//go:wasmexport jh_run
func jhRun(n uint32) uint64 { return Entry(n, handle) }

//go:wasmexport jh_wake
func jhWake() { wake() }

// Entry runs a handler for an entry of a worker beside the one of [Handle]. A
// job names it in its option "entry", or the manifest in the worker's:
//
//	//go:wasmexport reverse
//	func reverse(n uint32) uint64 { return jobhost.Entry(n, reverseHandler) }
func Entry(n uint32, h Handler) uint64 {
	// A handler that never waits would keep Go's own goroutines from running
	// for ever, since nothing preempts it in wasm and all stand still between
	// jobs. If that happens to the sweeper in the middle of its work, no
	// collection begins any more and the worker runs out of memory some jobs later.
	runtime.Gosched()
	current = Job{input: mailbox[:n:n], serial: current.serial + 1}
	result = run(&current, h)
	if len(result) == 0 {
		return 0
	}
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(result))))<<32 | uint64(len(result))
}
