//go:build wasip1

package jobhost

import "unsafe"

// The imports. The host uses pointers only during the call. Nothing in them
// escapes, so that callers can use buffers on their stacks.

// host calls the host; there is only one.
type host struct{}

// Generated from runtime/jobabi by "make imports": don't edit.

//go:wasmimport jobhost1 output
//go:noescape
func hostOutput(data unsafe.Pointer, dataLen uint32) int32

func (host) Output(data []byte) Errno {
	return Errno(hostOutput(unsafe.Pointer(unsafe.SliceData(data)), uint32(len(data))))
}

//go:wasmimport jobhost1 fail
//go:noescape
func hostFail(kind int32, text string) int32

//go:wasmimport jobhost1 info
//go:noescape
func hostInfo(key string, buf unsafe.Pointer, capacity uint32) int32

//go:wasmimport jobhost1 emit
//go:noescape
func hostEmit(data unsafe.Pointer, dataLen uint32) int32

func (host) Emit(data []byte) Errno {
	return Errno(hostEmit(unsafe.Pointer(unsafe.SliceData(data)), uint32(len(data))))
}

//go:wasmimport jobhost1 submit
//go:noescape
func hostSubmit(spec unsafe.Pointer, specLen uint32, when int32) int32

func (host) Submit(spec []byte, when int32) int32 {
	return hostSubmit(unsafe.Pointer(unsafe.SliceData(spec)), uint32(len(spec)), when)
}

//go:wasmimport jobhost1 log
//go:noescape
func hostLog(level int32, text string)

//go:wasmimport jobhost1 log_level
func hostLogLevel() int32

//go:wasmimport jobhost1 metric
//go:noescape
func hostMetric(kind int32, name string) int32

func (host) Metric(kind int32, name string) int32 {
	return hostMetric(kind, name)
}

//go:wasmimport jobhost1 observe
func hostObserve(id int32, value float64) int32

func (host) Observe(id int32, value float64) Errno {
	return Errno(hostObserve(id, value))
}

//go:wasmimport jobhost1 progress
func hostProgress(done int64, total int64)

func (host) Progress(done int64, total int64) {
	hostProgress(done, total)
}

//go:wasmimport jobhost1 remaining
func hostRemaining() int64

func (host) Remaining() int64 {
	return hostRemaining()
}

//go:wasmimport jobhost1 kv_get
//go:noescape
func hostKVGet(key string, buf unsafe.Pointer, capacity uint32) int32

//go:wasmimport jobhost1 kv_version
//go:noescape
func hostKVVersion(key string) int64

func (host) KVVersion(key string) int64 {
	return hostKVVersion(key)
}

//go:wasmimport jobhost1 kv_set
//go:noescape
func hostKVSet(key string, value unsafe.Pointer, valueLen uint32, ttl int64) int32

func (host) KVSet(key string, value []byte, ttl int64) Errno {
	return Errno(hostKVSet(key, unsafe.Pointer(unsafe.SliceData(value)), uint32(len(value)), ttl))
}

//go:wasmimport jobhost1 kv_del
//go:noescape
func hostKVDel(key string) int32

func (host) KVDelete(key string) Errno {
	return Errno(hostKVDel(key))
}

//go:wasmimport jobhost1 kv_add
//go:noescape
func hostKVAdd(key string, delta int64) int64

func (host) KVAdd(key string, delta int64) int64 {
	return hostKVAdd(key, delta)
}

//go:wasmimport jobhost1 kv_cas
//go:noescape
func hostKVCas(key string, version int64, value unsafe.Pointer, valueLen uint32) int32

func (host) KVCompareAndSet(key string, version int64, value []byte) Errno {
	return Errno(hostKVCas(key, version, unsafe.Pointer(unsafe.SliceData(value)), uint32(len(value))))
}

//go:wasmimport jobhost1 state_set
//go:noescape
func hostStateSet(tag string, status int32, message string, payload unsafe.Pointer, payloadLen uint32) int32

func (host) StateSet(tag string, status int32, message string, payload []byte) Errno {
	return Errno(hostStateSet(tag, status, message, unsafe.Pointer(unsafe.SliceData(payload)), uint32(len(payload))))
}

//go:wasmimport jobhost1 state_get
//go:noescape
func hostStateGet(task int32, tag string, buf unsafe.Pointer, capacity uint32) int32

//go:wasmimport jobhost1 state_watch
//go:noescape
func hostStateWatch(task int32, tag string) int32

func (host) StateWatch(task int32, tag string) int32 {
	return hostStateWatch(task, tag)
}

//go:wasmimport jobhost1 http
//go:noescape
func hostHTTP(request unsafe.Pointer, requestLen uint32) int32

func (host) HTTP(request []byte) int32 {
	return hostHTTP(unsafe.Pointer(unsafe.SliceData(request)), uint32(len(request)))
}

//go:wasmimport jobhost1 timer
func hostTimer(ms int64) int32

func (host) Timer(ms int64) int32 {
	return hostTimer(ms)
}

//go:wasmimport jobhost1 wait
//go:noescape
func hostWait(handles unsafe.Pointer, count uint32, timeout int64) int32

func (host) Wait(handles []int32, timeout int64) int32 {
	return hostWait(unsafe.Pointer(unsafe.SliceData(handles)), uint32(len(handles)), timeout)
}

//go:wasmimport jobhost1 read
//go:noescape
func hostRead(handle int32, buf unsafe.Pointer, capacity uint32) int32

//go:wasmimport jobhost1 recv
func hostRecv() int32

func (host) Receive() int32 {
	return hostRecv()
}

//go:wasmimport jobhost1 drop
func hostDrop(handle int32) int32

//go:wasmimport jobhost1 http_defer
//go:noescape
func hostHTTPDefer(request unsafe.Pointer, requestLen uint32, entry string, args unsafe.Pointer, argsLen uint32) int32

func (host) HTTPDefer(request []byte, entry string, args []byte) int32 {
	return hostHTTPDefer(unsafe.Pointer(unsafe.SliceData(request)), uint32(len(request)), entry, unsafe.Pointer(unsafe.SliceData(args)), uint32(len(args)))
}

// End of what is generated.

//go:wasmimport wasi_snapshot_preview1 random_get
//go:noescape
func wasiRandom(p unsafe.Pointer, n uint32) uint32

func (host) fail(kind int32, text string) { hostFail(kind, text) }

// info tries with room for 256 bytes, which is enough for most values, and asks
// again for longer ones.
func (host) Info(key string) (string, Errno) {
	var small [256]byte
	room := small[:]
	for {
		n := hostInfo(key, unsafe.Pointer(unsafe.SliceData(room)), uint32(len(room)))
		if n < 0 {
			return "", Errno(n)
		}
		if int(n) <= len(room) {
			return string(room[:n]), 0
		}
		room = make([]byte, n)
	}
}

func (host) Log(level Level, text string) { hostLog(int32(level), text) }
func (host) LogLevel() Level              { return Level(hostLogLevel()) }

// KVGet makes room for 256 bytes first, as Info does.
func (host) KVGet(key string) ([]byte, Errno) {
	room := make([]byte, 256)
	for {
		n := hostKVGet(key, unsafe.Pointer(unsafe.SliceData(room)), uint32(len(room)))
		if n < 0 {
			return nil, Errno(n)
		}
		if int(n) <= len(room) {
			return room[:n], 0
		}
		room = make([]byte, n)
	}
}

func (host) Drop(handle int32) { hostDrop(handle) }

// Read returns the whole message of a handle.
func (host) Read(handle int32) ([]byte, Errno) {
	n := hostRead(handle, nil, 0)
	if n < 0 {
		return nil, Errno(n)
	}
	message := make([]byte, n)
	for rest := message; len(rest) > 0; rest = rest[n:] {
		switch n = hostRead(handle, unsafe.Pointer(unsafe.SliceData(rest)), uint32(len(rest))); {
		case n < 0:
			return nil, Errno(n)
		case n == 0:
			return nil, ErrIO // it is shorter than the host said
		}
	}
	return message, 0
}

// next returns the next message of a handle with several. An empty one is
// consumed only by a read with room.
func (h host) Next(handle int32) ([]byte, Errno) {
	message, e := h.Read(handle)
	if e == 0 && len(message) == 0 {
		var room [1]byte
		e = min(Errno(hostRead(handle, unsafe.Pointer(&room), 1)), 0)
	}
	return message, e
}

func (host) StateGet(task int32, tag string) ([]byte, Errno) {
	room := make([]byte, 512)
	for {
		n := hostStateGet(task, tag, unsafe.Pointer(unsafe.SliceData(room)), uint32(len(room)))
		if n < 0 {
			return nil, Errno(n)
		}
		if int(n) <= len(room) {
			return room[:n], 0
		}
		room = make([]byte, n)
	}
}

// entropy fills p with random bytes of the host.
func entropy(p []byte) {
	if wasiRandom(unsafe.Pointer(unsafe.SliceData(p)), uint32(len(p))) != 0 {
		panic("jobhost: the host gave no random bytes")
	}
}
