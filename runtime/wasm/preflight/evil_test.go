package preflight_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/preflight"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// readHex reads a module that is written as bytes in hexadecimal, with
// comments after #.
func readHex(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var digits strings.Builder
	for line := range strings.Lines(string(text)) {
		code, _, _ := strings.Cut(line, "#")
		digits.WriteString(strings.Join(strings.Fields(code), ""))
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return b
}

// offered is what the host of these tests offers to import.
func offered() preflight.Offer {
	two := module.FuncType{Params: []byte{module.I32, module.I32}, Results: []byte{module.I32}}
	return preflight.Offer{
		"host": {"write": {Type: two}, "read": {Type: two}, "http": {Type: two, Missing: "http"}},
		"wasi": {"fd_close": {Type: two}},
	}
}

// verdict is what becomes of a module: what an error says, or whether the
// compiler takes it.
func verdict(t *testing.T, b []byte) string {
	t.Helper()
	m, err := preflight.Check(b, preflight.Limits{MemoryPages: 1024})
	if err == nil {
		err = preflight.Imports(m, offered())
	}
	if err != nil {
		return fmt.Sprintf("%s: test.wasm %v\nhint: %s\n", jobhost.CodeOf(err), err, jobhost.HintOf(err))
	}
	r := newRuntime(t.Context())
	defer func() { _ = r.Close(context.WithoutCancel(t.Context())) }()
	switch compiled, panicked := compile(t.Context(), r, b); {
	case panicked != nil:
		return "passed on; the compiler panics\n"
	case compiled == nil:
		return "passed on; the compiler refuses it\n"
	}
	return "passed on; the compiler takes it\n"
}

// TestEvil holds each file of testdata/evil against the golden file beside it.
// -update writes those.
func TestEvil(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/evil/*.hex")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".hex"), func(t *testing.T) {
			t.Parallel()
			b := readHex(t, path)
			before, start := allocated(), time.Now()
			got := verdict(t, b)
			if d := time.Since(start); d > 5*time.Second {
				t.Errorf("took %s", d)
			}
			if n := allocated() - before; n > 512<<20 {
				t.Errorf("allocated %d MiB", n>>20)
			}
			golden := strings.TrimSuffix(path, ".hex") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("%v (go test -update writes it)", err)
			}
			if got != string(want) {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

// allocated is how many bytes were ever allocated, by other tests too.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// survivor counts what becomes of damaged modules.
type survivor struct {
	t                           *testing.T
	runtime                     wazero.Runtime
	refused, panicked, compiled int
}

func (s *survivor) try(b []byte) {
	if _, err := preflight.Check(b, preflight.Limits{Vectors: true}); err != nil {
		if jobhost.CodeOf(err) != jobhost.CodeInvalid {
			s.t.Errorf("error %v", err)
		}
		s.refused++
		return
	}
	switch compiled, panicked := compile(s.t.Context(), s.runtime, b); {
	case panicked != nil:
		s.panicked++
	case compiled != nil:
		s.compiled++
		_ = compiled.Close(s.t.Context())
	}
}

// TestPrefixes cuts a module off everywhere. Few prefixes pass: those between
// sections, before there is code.
func TestPrefixes(t *testing.T) {
	t.Parallel()
	s := survivor{t: t, runtime: newRuntime(t.Context())}
	defer func() { _ = s.runtime.Close(context.WithoutCancel(t.Context())) }()
	for n := range guests.Outcomes {
		s.try(guests.Outcomes[:n])
	}
	if s.panicked > 0 || s.compiled > 16 {
		t.Errorf("%+v", s)
	}
}

// TestFlips flips each bit of a module.
func TestFlips(t *testing.T) {
	t.Parallel()
	s := survivor{t: t, runtime: newRuntime(t.Context())}
	defer func() { _ = s.runtime.Close(context.WithoutCancel(t.Context())) }()
	b := bytes.Clone(guests.Echo)
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			s.try(b)
			b[i] ^= 1 << bit
		}
	}
	t.Logf("%d bytes: %d refused before the compiler, %d compiled, the compiler panicked at %d", len(b), s.refused, s.compiled, s.panicked)
}
