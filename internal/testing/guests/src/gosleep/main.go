//go:build wasip1

// A worker in Go with the stock toolchain, for tests that need its runtime:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags='-s -w'
package main

import (
	"os"
	"time"
	"unsafe"
)

var (
	box    []byte
	answer []byte
)

func main() {}

//go:wasmexport jh_buf
func buf(size int32) int32 {
	box = make([]byte, size)
	return int32(uintptr(unsafe.Pointer(unsafe.SliceData(box))))
}

//go:wasmexport jh_run
func run(n int32) int64 {
	answer = append(answer[:0], "go: "...)
	answer = append(answer, box[:n]...)
	return int64(uintptr(unsafe.Pointer(unsafe.SliceData(answer))))<<32 | int64(len(answer))
}

//go:wasmexport sleep
func sleep(int32) int64 {
	time.Sleep(time.Hour)
	return 0
}

//go:wasmexport spin
func spin(int32) int64 {
	answer = append(answer[:0], 0)
	for {
		answer[0]++
	}
}

//go:wasmexport deadlock
func deadlock(int32) int64 {
	<-make(chan int)
	return 0
}

//go:wasmexport crash
func crash(n int32) int64 {
	_, _ = os.Stdout.WriteString("about to crash\n")
	return int64(box[int(n)+len(box)])
}

//go:wasmexport quit
func quit(int32) int64 {
	os.Exit(3)
	return 0
}

//go:wasmexport hoard
func hoard(int32) int64 {
	var kept [][]byte
	for {
		kept = append(kept, make([]byte, 1<<20))
		answer = kept[len(kept)-1]
	}
}
