package machine

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
)

// anyRecord draws a record that could be.
func anyRecord(rt *rapid.T) *record {
	n := rapid.IntRange(1, 300).Draw(rt, "steps")
	r := newRecord(rapid.Uint64().Draw(rt, "digest"), n, rapid.Int64Min(0).Draw(rt, "started"))
	r.begun, r.slots = rapid.Uint32().Draw(rt, "begun"), rapid.Uint32Min(1).Draw(rt, "slots")
	for range rapid.IntRange(0, 100).Draw(rt, "changes") {
		i := rapid.IntRange(0, n-1).Draw(rt, "step")
		d := detail{
			step: int32(i), runs: rapid.Uint32().Draw(rt, "runs"), replaced: rapid.Uint32Max(2).Draw(rt, "replaced"),
			via: via(rapid.IntRange(0, 3).Draw(rt, "via")), untimed: rapid.Bool().Draw(rt, "untimed"), empty: rapid.Bool().Draw(rt, "empty"),
			slot: rapid.Uint32Max(r.slots-1).Draw(rt, "slot"),
		}
		s := status(rapid.IntRange(0, int(cancelled)).Draw(rt, "status"))
		switch s {
		case falling:
			d.via = step
		case fallback:
			d.via = worker
		}
		if rapid.Bool().Draw(rt, "usual") && s != falling && s != fallback {
			d = usual(int32(i), s)
		}
		r.put(i, s, d)
	}
	if r.open == 0 {
		r.phase = done
	}
	for range rapid.IntRange(0, MaxSignals).Draw(rt, "signals") {
		r.signals = append(r.signals, kept{int32(rapid.IntRange(0, n-1).Draw(rt, "step")), rapid.Uint32Max(r.slots-1).Draw(rt, "slot")})
	}
	r.seen = rapid.SliceOfN(rapid.Uint64(), 0, MaxSignals).Draw(rt, "seen")
	if len(r.seen) == 0 {
		r.seen = nil
	}
	if len(r.details) == 0 {
		r.details = nil
	}
	return r
}

func TestRecordComesBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		r := anyRecord(rt)
		data := r.encode()
		got, err := decode(data)
		if err != nil || !reflect.DeepEqual(r, got) {
			rt.Fatalf("%v\n%+v\n%+v", err, r, got)
		}
		cut := rapid.IntRange(0, len(data)-1).Draw(rt, "cut")
		if _, err := decode(data[:cut]); !errors.Is(err, ErrRecord) {
			rt.Fatalf("%d of %d bytes: %v", cut, len(data), err)
		}
		if _, err := decode(append(data, 0)); !errors.Is(err, ErrRecord) {
			rt.Fatalf("a byte more: %v", err)
		}
	})
}

func TestRecordOfAnotherVersion(t *testing.T) {
	t.Parallel()
	data := newRecord(1, 3, 0).encode()
	if _, err := decode(data); err != nil {
		t.Fatal(err)
	}
	data[0]++
	if _, err := decode(data); !errors.Is(err, ErrRecord) {
		t.Fatalf("a newer one: %v", err)
	}
}

// fuzzed has a step of each kind.
func fuzzed(tb testing.TB) *Machine {
	tb.Helper()
	g := &Graph{Digest: 1, Output: None, Steps: []Node{
		{Name: "a", Next: []int32{1, 3}, Fallback: 2, FallbackOf: None},
		{Name: "b", Needs: []int32{0}, Fallback: None, FallbackOf: None, Kind: Signal, Signal: "x", FallbackWorker: true},
		{Name: "f", Fallback: None, FallbackOf: 0, HasFanOut: true},
		{Name: "c", Needs: []int32{0}, Fallback: None, FallbackOf: None, Kind: Child, Limit: 1},
		{Name: "d", Fallback: None, FallbackOf: None, Kind: Sleep},
	}, MaxParallel: 2, Timeout: 1}
	c, err := New(g, fixed{})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// fixed answers all questions in the same way.
type fixed struct{ Evaluator }

func (fixed) FanOut(int, *View) ([][]byte, error) { return [][]byte{nil}, nil }

// FuzzRecord holds bytes against what must be true of all: they are a record, of
// which there is no other form and with which everything can happen, or an error.
func FuzzRecord(f *testing.F) {
	c := fuzzed(f)
	for _, change := range []func(*record){
		func(*record) {},
		func(r *record) {
			r.put(0, falling, detail{step: 0, runs: 1, via: step})
			r.put(2, running, usual(2, running))
		},
		func(r *record) { r.put(1, fallback, detail{step: 1, runs: 2, replaced: 3, via: worker, untimed: true}) },
		func(r *record) { r.slots, r.signals, r.seen = 300, []kept{{1, 299}}, []uint64{1, 2} },
		func(r *record) {
			for i := range r.status {
				r.put(i, stopped, detail{step: int32(i), runs: 1})
			}
			r.phase = broken
		},
	} {
		r := newRecord(1, 5, 1e12)
		change(r)
		f.Add(r.encode(), uint8(JobDead), int8(0), uint8(1))
	}
	f.Fuzz(func(t *testing.T, data []byte, what uint8, step int8, number uint8) {
		r, err := decode(data)
		if err != nil {
			if !errors.Is(err, ErrRecord) {
				t.Fatal(err)
			}
			return
		}
		if again := r.encode(); !bytes.Equal(data, again) {
			t.Fatalf("two forms of a record:\n%x\n%x", data, again)
		}
		if _, err := c.Look(data); err != nil {
			return
		}
		run := Run{Step: int(step), Number: uint32(number), Fallback: number&64 != 0}
		e := &Event{
			What: Happening(what % 14), Run: run, Step: int(step), Signal: "x", Timer: Timer{run, Purpose(number & 3)}, Status: "failed",
		}
		out, err := c.Advance("wf-1", data, e, empty{})
		if err != nil {
			t.Fatal(err)
		}
		if out.Record != nil {
			if _, err := c.Look(out.Record); err != nil {
				t.Fatalf("%v after %+v: %+v", err, e, out)
			}
		}
	})
}

// empty is a Reader of a store that has nothing.
type empty struct{}

func (empty) Read(Source) ([]byte, error)           { return nil, nil }
func (empty) Failure(int) (*jobhost.Failure, error) { return nil, nil }
