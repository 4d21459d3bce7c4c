package rewrite_test

import (
	"errors"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/rewrite"
)

// FuzzRewrite looks for panics, and for modules that are valid only before.
func FuzzRewrite(f *testing.F) {
	for _, b := range [][]byte{guests.Noop, guests.Echo, guests.Outcomes, guests.Exit, one().bytes()} {
		f.Add(b)
	}
	for _, a := range attacks() {
		if b := a.bytes(); len(b) < 4096 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := module.Read(b)
		if err != nil {
			return
		}
		var results [2]*rewrite.Result
		for i, keep := range []bool{false, true} {
			if results[i], err = rewrite.Rewrite(m, rewrite.Options{KeepData: keep}); err != nil {
				break
			}
		}
		if survive(interpreter(), b) != nil {
			return
		}
		if errors.Is(err, rewrite.ErrName) {
			return
		}
		if err != nil {
			t.Fatalf("the module is valid, but: %v", err)
		}
		for _, r := range results {
			if err := validate(interpreter(), r.Module); err != nil {
				t.Fatalf("the module was valid: %v", err)
			}
		}
	})
}

// survive is validate for modules that make the engine panic.
func survive(config wazero.RuntimeConfig, wasm []byte) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the engine panicked")
		}
	}()
	return validate(config, wasm)
}
