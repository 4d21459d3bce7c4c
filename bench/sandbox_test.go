package bench

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/wasm"
)

// sandboxGuests are workers that do the same small amount of work, in C and in Go.
var sandboxGuests = []struct{ name, file, input string }{
	{"C vowels 64 B", "vowels/vowels.wasm", strings.Repeat("the quick brown fox jumps over it ", 2)[:64]},
	{"C vowels 1 KiB", "vowels/vowels.wasm", strings.Repeat("the quick brown fox jumps over it ", 31)[:1024]},
	{"Go hello", helloFile, "world"},
	{"Go wordcount 64 B", "wordcount/wordcount.wasm", strings.Repeat("the quick brown fox jumps over it ", 2)[:64]},
}

// helloFile is the smallest worker in Go, which is no example and so is built here.
const helloFile = "hello"

var buildHello = sync.OnceValues(func() ([]byte, error) {
	path := filepath.Join(os.TempDir(), "jobhost-bench-hello.wasm")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", path, "../plugins/sdk/go/hello")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return os.ReadFile(path)
})

// sandboxModule reads an example.
func sandboxModule(file string) ([]byte, error) {
	if file == helloFile {
		return buildHello()
	}
	return os.ReadFile(filepath.Join("../plugins/examples", file))
}

// sandboxPlugin loads an example with an isolation.
func sandboxPlugin(b *testing.B, file string, isolation runtime.Isolation) runtime.Plugin {
	b.Helper()
	module, err := sandboxModule(file)
	if err != nil {
		b.Fatalf("%v; make build makes it", err)
	}
	engine, err := wasm.New(wasm.Config{CacheDir: filepath.Join(os.TempDir(), "jobhost-bench-cache")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = engine.Close(context.Background()) })
	plugin, err := engine.Load(b.Context(), runtime.Source{Worker: "bench", Bytes: module, Isolation: isolation})
	if err != nil {
		b.Fatal(err)
	}
	return plugin
}

// attempts runs attempts under a deadline in one sandbox.
func attempts(b *testing.B, plugin runtime.Plugin, input string) {
	b.Helper()
	sandbox := runtime.NewSandbox(plugin, nil)
	defer func() { _ = sandbox.Close(context.Background()) }()
	var at hostcall.Attempt
	payload := []byte(input)
	b.ReportAllocs()
	for b.Loop() {
		at.Reset()
		at.Input = payload
		at.Limits.OutputBytes = 1 << 20
		at.Deadline = time.Now().Add(30 * time.Second)
		if outcome := sandbox.Run(b.Context(), &at); outcome.Failure != nil {
			b.Fatal(outcome.Failure.Message)
		}
	}
}

// BenchmarkSandbox is an attempt under a deadline in a sandbox that is reused
// unchanged, reset, or created and initialised each time.
func BenchmarkSandbox(b *testing.B) {
	for _, guest := range sandboxGuests {
		for _, isolation := range []runtime.Isolation{runtime.IsolateInstance, runtime.IsolateJob, runtime.IsolateFresh} {
			b.Run(guest.name+"/"+string(isolation), func(b *testing.B) {
				attempts(b, sandboxPlugin(b, guest.file, isolation), guest.input)
			})
		}
	}
}

// BenchmarkCommand is an attempt of an unmodified command, which initialises
// itself each time.
func BenchmarkCommand(b *testing.B) {
	for _, guest := range []struct{ name, file, input string }{
		{"C crc32 64 B", "crc32/crc32.wasm", strings.Repeat("x", 64)},
		{"Go csvstats 64 B", "csvstats/csvstats.wasm", strings.Repeat("1,2,3,4\n", 8)},
	} {
		b.Run(guest.name, func(b *testing.B) {
			attempts(b, sandboxPlugin(b, guest.file, runtime.IsolateJob), guest.input)
		})
	}
}

// BenchmarkNewSandbox makes and frees an instance from the image.
func BenchmarkNewSandbox(b *testing.B) {
	for _, guest := range sandboxGuests[1:] {
		b.Run(guest.name, func(b *testing.B) {
			plugin := sandboxPlugin(b, guest.file, runtime.IsolateJob)
			b.ReportAllocs()
			for b.Loop() {
				i, err := plugin.Instantiate(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				_ = i.Close(b.Context())
			}
		})
	}
}

// BenchmarkIdleMemory reports the private memory of a sandbox that has run a
// job and waits for the next one, in bytes, with 100 of them.
func BenchmarkIdleMemory(b *testing.B) {
	for _, guest := range sandboxGuests[1:] {
		b.Run(guest.name, func(b *testing.B) {
			plugin := sandboxPlugin(b, guest.file, runtime.IsolateJob)
			run := func() runtime.Instance {
				i, err := plugin.Instantiate(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				at := &hostcall.Attempt{Input: []byte(guest.input), Limits: hostcall.Limits{OutputBytes: 1 << 20}}
				if got := i.Run(b.Context(), at); got.Outcome.Failure != nil {
					b.Fatal(got.Outcome.Failure.Message)
				}
				return i
			}
			first := run() // makes the image
			const count = 100
			for b.Loop() {
				before := privateBytes(b)
				instances := make([]runtime.Instance, count)
				for n := range instances {
					instances[n] = run()
				}
				b.ReportMetric(float64(privateBytes(b)-before)/count, "B/instance")
				for _, i := range instances {
					_ = i.Close(b.Context())
				}
			}
			_ = first.Close(b.Context())
		})
	}
}

// privateBytes is the memory that this process does not share.
func privateBytes(b *testing.B) int64 {
	b.Helper()
	goruntime.GC()
	debug.FreeOSMemory()
	file, err := os.Open("/proc/self/smaps_rollup")
	if err != nil {
		b.Skip("only Linux tells: ", err)
	}
	defer func() { _ = file.Close() }()
	var sum int64
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 3 && (fields[0] == "Private_Clean:" || fields[0] == "Private_Dirty:") {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			sum += kib << 10
		}
	}
	return sum
}
