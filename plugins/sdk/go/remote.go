//go:build !wasip1

package jobhost

// Remote is a host that is reached by other means than Wasm: package plugins/sdk/process has
// one for workers that are processes. Its methods are the imports of docs/abi.md, with the
// same numbers: those below zero are errnos. They must be safe for concurrent use. It does
// not exist in wasm.
type Remote interface {
	Output(p []byte) Errno
	Info(key string) (string, Errno)
	Emit(p []byte) Errno
	Log(level Level, text string)
	LogLevel() Level
	Metric(kind int32, name string) int32
	Observe(id int32, value float64) Errno
	Progress(done, total int64)
	Remaining() int64 // milliseconds; -1 = there is no deadline
	Submit(text []byte, when int32) int32
	RemoteKV
	RemoteOps
	RemoteStates
}

// RemoteKV has the calls about keys and values.
type RemoteKV interface {
	KVGet(key string) ([]byte, Errno)
	KVVersion(key string) int64
	KVSet(key string, value []byte, ttl int64) Errno // ttl in milliseconds
	KVDelete(key string) Errno
	KVAdd(key string, delta int64) int64 // errors are -2⁶³ - errno
	KVCompareAndSet(key string, version int64, value []byte) Errno
}

// RemoteOps has the calls that start something that takes time, and the one for the inbox.
type RemoteOps interface {
	HTTP(text []byte) int32
	HTTPDefer(text []byte, entry string, args []byte) int32
	Timer(ms int64) int32
	Receive() int32
	Wait(numbers []int32, timeout int64) int32
	// Read returns the message of a handle, and Next the next message of one with several.
	Read(number int32) ([]byte, Errno)
	Next(number int32) ([]byte, Errno)
	Drop(number int32)
}

// RemoteStates has the calls about reported states.
type RemoteStates interface {
	StateSet(tag string, status int32, message string, payload []byte) Errno
	StateGet(task int32, tag string) ([]byte, Errno)
	StateWatch(task int32, tag string) int32
}

// RemoteJob returns a job of a remote host, for packages that call handlers.
func RemoteJob(r Remote, input []byte) *Job { return &Job{input: input, host: host{r}} }
