//go:build !wasip1

package jobhost

import (
	"fmt"
	"os"
	"strings"
)

// host is what a job calls: the in-memory one of [Run], or that of [Do]. Code
// outside both has none, and can only log.
type host struct{ backend }

// backend has the calls of the ABI; numbers below zero are errnos.
type backend interface {
	output(p []byte) Errno
	fail(kind int32, text string)
	info(key string) (string, Errno)
	emit(p []byte) Errno
	log(level Level, text string)
	logLevel() Level
	metric(kind int32, name string) int32
	observe(id int32, value float64) Errno
	progress(done, total int64)
	remaining() int64
	submit(text []byte, when int32) int32

	kvGet(key string) ([]byte, Errno)
	kvVersion(key string) int64
	kvSet(key string, value []byte, ttl int64) Errno
	kvDel(key string) Errno
	kvAdd(key string, delta int64) int64
	kvCas(key string, version int64, value []byte) Errno

	http(text []byte) int32
	httpDefer(text []byte, entry string, args []byte) int32
	timer(ms int64) int32
	wait(numbers []int32, timeout int64) int32
	read(number int32) ([]byte, Errno)
	next(number int32) ([]byte, Errno)
	drop(number int32)
	recv() int32

	stateSet(tag string, status int32, message string, payload []byte) Errno
	stateGet(task int32, tag string) ([]byte, Errno)
	stateWatch(task int32, tag string) int32
}

func (h host) log(level Level, text string) {
	if h.backend != nil {
		h.backend.log(level, text)
		return
	}
	if level >= LevelInfo {
		_, _ = fmt.Fprintln(os.Stderr, levelName(level)+" "+strings.TrimRight(text, "\r\n"))
	}
}

func (h host) logLevel() Level {
	if h.backend == nil {
		return LevelInfo
	}
	return h.backend.logLevel()
}
