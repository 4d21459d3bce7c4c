package jobabi_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/jobabi"
)

// TestDocs compares the table of imports in docs/abi.md with the code.
func TestDocs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/abi.md")
	if err != nil {
		t.Fatal(err)
	}
	_, imports, _ := strings.Cut(string(text), "\n## Imports\n")
	rows := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| `(\\([^`]*)` \\|").FindAllStringSubmatch(imports, -1)
	documented := map[string]string{}
	for _, row := range rows {
		documented[row[1]] = row[2]
	}
	functions := jobabi.Functions()
	for _, f := range functions {
		if got := documented[f.Name]; got != signature(f) {
			t.Errorf("docs/abi.md has %s%s, the code %s%s", f.Name, got, f.Name, signature(f))
		}
	}
	if len(documented) != len(functions) {
		t.Errorf("docs/abi.md has %d imports, the code %d", len(documented), len(functions))
	}
}

func signature(f jobabi.Function) string {
	params := make([]string, len(f.Params))
	for i, p := range f.Params {
		params[i] = f.Names[i] + " " + api.ValueTypeName(p)
	}
	text := "(" + strings.Join(params, ", ") + ")"
	if len(f.Results) > 0 {
		text += " → " + api.ValueTypeName(f.Results[0])
	}
	return text
}

// frame implements [jobabi.Caller].
type frame struct {
	context.Context
	at *hostcall.Attempt
}

func (f *frame) Attempt() *hostcall.Attempt { return f.at }
func (f *frame) Life() context.Context      { return f.Context }

// caller is a module with one page of memory that passes on calls of all imports.
type caller struct {
	module api.Module
	frame  *frame
}

func newCaller(t testing.TB) *caller {
	t.Helper()
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	t.Cleanup(func() { _ = r.Close(ctx) })
	if err := jobabi.Instantiate(ctx, r); err != nil {
		t.Fatal(err)
	}
	m, err := r.Instantiate(ctx, callerModule())
	if err != nil {
		t.Fatal(err)
	}
	c := &caller{module: m, frame: &frame{Context: ctx}}
	c.frame.at = &hostcall.Attempt{
		Input:    []byte("payload"),
		Limits:   hostcall.Limits{OutputBytes: 1 << 10, LogBytes: 1 << 10, LineBytes: 100},
		Services: services{},
	}
	return c
}

func callerModule() []byte {
	var types, imports, functions, exports, code []byte
	all := jobabi.Functions()
	n := byte(len(all))
	name := func(b []byte, s string) []byte { return append(append(b, byte(len(s))), s...) }
	for i, f := range all {
		types = append(types, 0x60, byte(len(f.Params)))
		types = append(types, f.Params...)
		types = append(types, byte(len(f.Results)))
		types = append(types, f.Results...)
		imports = append(name(name(imports, jobabi.Module), f.Name), 0, byte(i))
		functions = append(functions, byte(i))
		exports = append(name(exports, f.Name), 0, n+byte(i))
		body := []byte{0}
		for p := range f.Params {
			body = append(body, 0x20, byte(p))
		}
		body = append(body, 0x10, byte(i), 0x0b)
		code = append(append(code, byte(len(body))), body...)
	}
	b := []byte("\x00asm\x01\x00\x00\x00")
	section := func(id byte, content []byte) {
		content = append([]byte{n}, content...)
		b = append(b, id, byte(len(content)&0x7f|0x80), byte(len(content)>>7))
		b = append(b, content...)
	}
	section(1, types)
	section(2, imports)
	section(3, functions)
	b = append(b, 5, 3, 1, 0, 1) // one page of memory
	section(7, exports)
	section(10, code)
	return b
}

// call calls an import; a trap is the only error that may come of it.
func (c *caller) call(t testing.TB, f jobabi.Function, args ...uint64) {
	t.Helper()
	results, err := c.module.ExportedFunction(f.Name).Call(c.frame, args...)
	var trap *jobabi.Trap
	if err != nil && !errors.As(err, &trap) {
		t.Fatalf("%s%v: %v", f.Name, args, err)
	}
	if trap != nil && (trap.Call != f.Name || !strings.HasPrefix(trap.Error(), "jobhost1."+f.Name+" was given ")) {
		t.Fatalf("%s%v: %v", f.Name, args, trap)
	}
	if len(results) == 1 && f.Results[0] == api.ValueTypeI32 && api.DecodeI32(results[0]) < int32(hostcall.ErrConflict) {
		t.Fatalf("%s%v = %d", f.Name, args, api.DecodeI32(results[0]))
	}
}

// TestBadArguments gives every call combinations of pointers and lengths from
// attack G11: all those in which at most two arguments, which is a pointer and its
// length or those of two, are neither 0 nor 1. JOBHOST_CHAOS=1 (make chaos) lets
// all arguments be anything at once, which is 280,000 calls of state_set.
func TestBadArguments(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	values := []uint64{0, 1, 65535, 65536, 65537, 0xffffffff}
	for _, f := range jobabi.Functions() {
		odd := 2
		if os.Getenv("JOBHOST_CHAOS") != "" {
			odd = len(f.Params)
		}
		args := make([]uint64, len(f.Params))
		var each func(i, odd int)
		each = func(i, odd int) {
			if i == len(args) {
				c.call(t, f, args...)
				return
			}
			for k, v := range values {
				left := odd
				if k > 1 {
					left--
				}
				if args[i] = v; left >= 0 {
					each(i+1, left)
				}
			}
		}
		each(0, odd)
	}
}

func FuzzArguments(f *testing.F) {
	f.Add(0, uint64(0), uint64(0), uint64(0), uint64(0), uint64(0), uint64(0))
	f.Add(3, uint64(1), uint64(math.MaxUint32), uint64(65536), uint64(math.MaxUint64), uint64(0), uint64(0))
	c := newCaller(f)
	all := jobabi.Functions()
	f.Fuzz(func(t *testing.T, which int, a0, a1, a2, a3, a4, a5 uint64) {
		fn := all[uint(which)%uint(len(all))]
		c.call(t, fn, []uint64{a0, a1, a2, a3, a4, a5}[:len(fn.Params)]...)
	})
}

// TestFillOrSize checks the convention at its edges.
func TestFillOrSize(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	input := c.module.ExportedFunction("input")
	for _, tt := range []struct {
		name     string
		buf, cap uint64
		written  string
		trap     bool
	}{
		{name: "just enough", buf: 100, cap: 7, written: "payload"},
		{name: "more than enough", buf: 200, cap: 8, written: "payload"},
		{name: "one short", buf: 300, cap: 6},
		{name: "size only, from nowhere", buf: 0xffffffff, cap: 0},
		{name: "the room that isn't used may be outside", buf: 65529, cap: 0xffff, written: "payload"},
		{name: "one byte outside", buf: 65530, cap: 7, trap: true},
	} {
		results, err := input.Call(c.frame, tt.buf, tt.cap)
		if (err != nil) != tt.trap || err == nil && results[0] != 7 {
			t.Errorf("%s: %v, %v", tt.name, results, err)
		}
		if tt.trap || tt.buf == 0xffffffff {
			continue
		}
		got, _ := c.module.Memory().Read(uint32(tt.buf), 7)
		if want := tt.written + "\x00\x00\x00\x00\x00\x00\x00"; string(got) != want[:7] {
			t.Errorf("%s: wrote %q", tt.name, got)
		}
	}
}

// services takes everything.
type services struct{}

func (services) Emit(*hostcall.Attempt, []byte)           {}
func (services) Progress(*hostcall.Attempt, int64, int64) {}
func (services) Metric(_ *hostcall.Attempt, _ hostcall.MetricKind, name string) (int32, hostcall.Errno) {
	if _, err := hostcall.ParseMetric(name); err != nil {
		return 0, hostcall.ErrInvalid
	}
	return 1, hostcall.OK
}
func (services) Observe(*hostcall.Attempt, int32, float64) hostcall.Errno { return hostcall.OK }

func ExampleFunctions() {
	for _, f := range jobabi.Functions() {
		fmt.Println(f.Name)
	}
	// Output:
	// input
	// output
	// fail
	// info
	// emit
	// submit
	// log
	// log_level
	// metric
	// observe
	// progress
	// remaining
	// kv_get
	// kv_version
	// kv_set
	// kv_del
	// kv_add
	// kv_cas
	// state_set
	// state_get
	// state_watch
	// http
	// timer
	// wait
	// read
	// recv
	// drop
	// http_defer
}
