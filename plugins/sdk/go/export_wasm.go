//go:build wasip1

package jobhost

import (
	"runtime"
	"unsafe"
)

// Go's collector doesn't move objects, so addresses given to the host stay
// valid as long as something here points to them.
var (
	// firstBox is the mailbox until an input is larger. It is in the module's
	// data, so that a sandbox that was reset still has it.
	firstBox [64 << 10]byte
	// mailbox is where the host writes the input. It is reused for every job,
	// and grows with the largest of them.
	mailbox = firstBox[:]
	// current is the current job: a variable, so that jobs allocate nothing.
	current Job
	// result is what the host reads after an entry has returned.
	result []byte
)

// The goroutines of Go's runtime itself have not run yet when a package is initialised, and
// nothing else lets them before the first job. They start here, as otherwise each job in a
// pristine sandbox would start them again: 1.5 µs of its 8.
func init() { runtime.Gosched() }

//go:wasmexport jh_buf
func jhBuf(least uint32) unsafe.Pointer {
	if int(least) > len(mailbox) {
		mailbox = nil // may be collected before the new one is made
		// A quarter more than needed: slowly rising sizes shouldn't leave a
		// dead mailbox each.
		mailbox = make([]byte, least+least/4)
	}
	return unsafe.Pointer(unsafe.SliceData(mailbox))
}

//go:wasmexport jh_run
func jhRun(n uint32) uint64 { return Entry(n, handle) }

//go:wasmexport jh_wake
func jhWake() { wake() }

// Entry runs a handler for an entry of a worker besides the one of [Handle]. A
// job names the entry in its option "entry", or the manifest in the worker's:
//
//	//go:wasmexport reverse
//	func reverse(n uint32) uint64 { return jobhost.Entry(n, reverseHandler) }
func Entry(n uint32, h Handler) uint64 {
	// A handler that never waits would keep Go's own goroutines from running
	// forever, since nothing preempts it in wasm and all are suspended between
	// jobs. If that happens to the sweeper in the middle of its work, no collection
	// starts any more and the worker runs out of memory some jobs later.
	runtime.Gosched()
	current = Job{input: mailbox[:n:n], serial: current.serial + 1}
	result = run(&current, h)
	if len(result) == 0 {
		return 0
	}
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(result))))<<32 | uint64(len(result))
}
