package wasiabi_test

import (
	"encoding/binary"
	"errors"
	"os"
	"testing"

	"github.com/jobhost/jobhost/runtime/wasiabi"
)

// FuzzCalls makes calls from bytes: which function, its arguments, and what
// lies in memory. None may panic but proc_exit, leave files open behind the
// attempt or touch what is beside the mount.
func FuzzCalls(f *testing.F) {
	f.Add([]byte("\x1d\x03\x00\x01\x06\x20"), []byte("../out"))
	f.Add([]byte{21, 1, 8, 1, 0, 25, 3, 8, 1, 0}, []byte("\x00\x00\x00\x00\x08\x00\x00\x00"))
	all := wasiabi.Functions()
	for i := range all {
		f.Add([]byte{byte(i), 3, 0, 3, 6, 200, 3, 0, 6, 200}, []byte("d\x00link/f/../x"))
	}
	above := f.TempDir()
	tree(f, above, map[string]string{"secret": "canary", "mount/": ""})
	stop := make(chan struct{})
	close(stop)
	b := newBox(f, wasiabi.Config{
		Stop: stop, MaxWrite: 1 << 16, MaxOpen: 8,
		Mounts: []wasiabi.Mount{{Host: above + "/mount", Guest: "/"}},
	})
	f.Fuzz(func(t *testing.T, calls, memory []byte) {
		b.t = t
		b.module.memory.b = make([]byte, 4096)
		copy(b.module.memory.b[copy(b.module.memory.b, memory):], memory)
		b.Begin(b.at, wasiabi.Streams(len(calls)%2))
		for len(calls) > 0 && len(calls) < 200 {
			fn := all[int(calls[0])%len(all)]
			calls = calls[1:]
			args := make([]uint64, len(fn.Params))
			for i := range args {
				args[i], calls = argument(calls)
			}
			exit(t, func() {
				if e := b.call(fn.Name, args...); e > wasiabi.ENOTCAPABLE && len(fn.Results) > 0 {
					t.Errorf("%s%v = %d", fn.Name, args, e)
				}
			})
		}
		b.End()
		if text, err := os.ReadFile(above + "/secret"); string(text) != "canary" {
			t.Errorf("the secret is %q, %v", text, err)
		}
		if got, _ := os.ReadDir(above); len(got) != 2 {
			t.Errorf("there are %v beside the mount", got)
		}
		if open := openFiles(t, above); open != 1 {
			t.Errorf("%d files are open", open)
		}
	})
}

// argument makes small numbers likely: the rest is one of what hurts, or eight bytes.
func argument(b []byte) (uint64, []byte) {
	if len(b) == 0 {
		return 0, nil
	}
	switch v := b[0]; {
	case v < 200:
		return uint64(v), b[1:]
	case v < 250:
		hurts := []uint64{4095, 4096, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1<<63 - 1, 1 << 63, 1<<64 - 1, 1<<30 - 1, 2048}
		return hurts[int(v)%len(hurts)], b[1:]
	}
	var eight [8]byte
	n := copy(eight[:], b[1:])
	return binary.LittleEndian.Uint64(eight[:]), b[1+n:]
}

func exit(t *testing.T, call func()) {
	defer func() {
		if r := recover(); r != nil {
			var exit *wasiabi.Exit
			if err, ok := r.(error); !ok || !errors.As(err, &exit) {
				t.Errorf("panic: %v", r)
				panic(r)
			}
		}
	}()
	call()
}
