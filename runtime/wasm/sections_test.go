package wasm

import (
	"testing"

	"github.com/jobhost/jobhost/internal/testing/guests"
)

func FuzzOutline(f *testing.F) {
	for _, module := range [][]byte{guests.Noop, guests.Exit, guests.Outcomes, gateModule([]string{"jh_run"}, true)} {
		f.Add(module)
	}
	f.Add([]byte(coreHeader + "\x02\xff\xff\xff\xff\x0f"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if what, _ := notCore(b); what != "" {
			return
		}
		o, err := readOutline(b)
		if err == nil && len(o.imports)*3+len(o.memories)*2 > len(b) {
			t.Errorf("%d imports and %d memories in %d bytes", len(o.imports), len(o.memories), len(b))
		}
	})
}

func TestOutline(t *testing.T) {
	t.Parallel()
	o, err := readOutline(guests.Exit)
	if err != nil {
		t.Fatal(err)
	}
	if len(o.imports) != 4 || o.imports[0].module != "wasi_snapshot_preview1" || len(o.memories) != 1 || o.memories[0].min == 0 {
		t.Errorf("%+v", o)
	}
	for n := len(coreHeader) + 1; n < len(guests.Exit); n++ {
		// A cut between two sections can't be seen here.
		if o, err := readOutline(guests.Exit[:n]); err == nil && len(o.imports) > 4 {
			t.Errorf("%d bytes: %+v", n, o)
		}
	}
}

func TestMemoryGrowsToItsLimit(t *testing.T) {
	t.Parallel()
	m := &memory{limit: 10 * pageBytes}
	m.Allocate(0, 1<<32)
	m.Reallocate(pageBytes)[0] = 7
	for pages := uint64(2); pages <= 10; pages++ {
		b := m.Reallocate(pages * pageBytes)
		if uint64(len(b)) != pages*pageBytes || uint64(cap(b)) > m.limit || b[0] != 7 {
			t.Fatalf("%d pages: %d bytes, room for %d", pages, len(b), cap(b))
		}
		for _, v := range b[(pages-1)*pageBytes:] {
			if v != 0 {
				t.Fatal("new memory is not zero")
			}
		}
	}
	if m.refused {
		t.Error("refused within the limit")
	}
	if m.Reallocate(10*pageBytes+1) != nil || !m.refused {
		t.Error("grew over the limit")
	}
}
