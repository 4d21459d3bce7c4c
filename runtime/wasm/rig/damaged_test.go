package rig_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/rig"
)

// TestDamaged pads each number of small programs, and puts each of the 256 values
// in the place of some of their bytes. What the reader and the type checker still
// take must do the same rewritten as its canonical form does interpreted. Padding
// is what shows that two decoders read the same number differently; other values
// of bytes show types and flags that one of them knows and the other doesn't.
func TestDamaged(t *testing.T) {
	t.Parallel()
	total := 8
	if os.Getenv(envCount) != "" {
		total = number(t, envCount, 0) / 20
	}
	sum := inChildren(t, "damaged", number(t, envFirst, 0), total, 500)
	if sum["padded"] < 400*total || sum["changed"] < 200*total || sum["ran"] < 5*total {
		t.Errorf("too little was tried: %v", sum)
	}
	t.Logf("%d programs: %v", total, sum)
}

// damaged tries what is made of generated programs.
type damaged struct{ bounded *rig.Bounded }

func newDamaged(ctx context.Context) worker {
	return &damaged{rig.NewBounded(ctx)}
}

func (d *damaged) close(ctx context.Context) error { return d.bounded.Close(ctx) }

// changedBytes is how many bytes of a program get all values.
const changedBytes = 1

func (d *damaged) try(ctx context.Context, n int) report {
	small := rig.Profiles()[1]
	small.Functions, small.Room = 1, 12
	program, err := rig.Generate(uint64(n), small, nil)
	if err != nil {
		return report{Wrong: err.Error()}
	}
	seed := &original{d: d, wasm: program.Wasm, report: report{Count: map[string]int{}}}
	if _, result, err := rig.Prepare(program.Wasm, rig.Rewritten); err == nil {
		seed.rewritten = result.Module
	}
	seed.pad(ctx)
	rng := rand.New(rand.NewPCG(uint64(n), 5))
	for range changedBytes {
		at := len(module.Header) + rng.IntN(len(program.Wasm)-len(module.Header))
		for v := range 256 {
			b := bytes.Clone(program.Wasm)
			b[at] = byte(v)
			seed.Count["changed"]++
			seed.run(ctx, b, fmt.Sprintf("byte %#x is %#x", at, v))
		}
	}
	return seed.report
}

// original is a program that is damaged.
type original struct {
	d         *damaged
	wasm      []byte
	rewritten []byte
	report
}

// pad puts a byte behind each byte of the module that could be the last of a
// number, which gets the bit that says so. Sizes around it are made right.
func (o *original) pad(ctx context.Context) {
	m, err := module.Read(o.wasm)
	if err != nil {
		o.Wrong = err.Error()
		return
	}
	for f, body := range m.Bodies {
		for at := body.Start; at < body.End; at++ {
			for _, longer := range padded(o.wasm[body.Start:body.End], at-body.Start) {
				b, err := m.Encode(func(b []byte, function int) ([]byte, error) {
					if function == f {
						return append(b, longer...), nil
					}
					return append(b, o.wasm[m.Bodies[function].Start:m.Bodies[function].End]...), nil
				})
				if err != nil {
					o.Wrong = err.Error()
					return
				}
				o.Count["padded"]++
				o.run(ctx, b, fmt.Sprintf("byte %#x is padded", at))
			}
		}
	}
	for _, s := range m.Sections {
		if s.ID == module.SectionCode {
			continue
		}
		for at := range s.End - s.Start {
			for _, longer := range padded(o.wasm[s.Start:s.End], at) {
				b := append(bytes.Clone(o.wasm[:s.Header]), s.ID)
				b = append(module.AppendSized(b, longer), o.wasm[s.End:]...)
				o.Count["padded"]++
				o.run(ctx, b, fmt.Sprintf("byte %#x is padded", s.Start+at))
			}
		}
	}
}

// padded returns content with a number made longer that may end at a byte:
// one without a sign, and one with the sign −.
func padded(content []byte, at int) [][]byte {
	if content[at] >= 0x80 {
		return nil
	}
	var all [][]byte
	for _, last := range []byte{0, 0x7f} {
		longer := append(bytes.Clone(content[:at]), content[at]|0x80, last)
		all = append(all, append(longer, content[at+1:]...))
	}
	return all
}

// run compares a damaged program, if it is still one and its rewritten form is
// new.
func (o *original) run(ctx context.Context, wasm []byte, what string) {
	m, err := rig.Check(wasm)
	if err != nil {
		return
	}
	o.Count["taken"]++
	_, result, err := rig.Prepare(wasm, rig.Rewritten)
	if err != nil {
		o.Count["not rewritten"]++
		return
	}
	if bytes.Equal(result.Module, o.rewritten) {
		return
	}
	o.Count["ran"]++
	diff, ended := o.d.bounded.Run(ctx, m, 1)
	if !ended {
		o.Count["endless"]++
	}
	if diff != "" && o.Wrong == "" {
		o.Wrong = fmt.Sprintf("%s: %s\n%s", what, diff, rig.Text(wasm))
	}
}
