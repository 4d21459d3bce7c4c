package snapshot

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// model is a memory, another one of the same image, and what must be in them.
type model struct {
	image  []byte
	memory *Memory
	want   []byte
	other  *Memory
	wants  []byte // of the other one
	limit  int    // of the next run
	first  int    // the size in the beginning, as soon as there is one
	left   int    // by how much later runs may have a larger one
}

const modelPages = 5 // the limit in pages of linear memory

func newModel(rt *rapid.T) *model {
	size := rapid.IntRange(0, modelPages-2).Draw(rt, "image pages") * PageBytes
	m := &model{image: make([]byte, size), limit: modelPages * PageBytes, first: size}
	m.left = modelPages / 4 * PageBytes
	if size > 0 {
		for range rapid.IntRange(0, 20).Draw(rt, "written") {
			fill(rt, m.image)
		}
	}
	m.want, m.wants = bytes.Clone(m.image), bytes.Clone(m.image)
	return m
}

// open makes the memories; what it returns closes them.
func (m *model) open(rt *rapid.T, method Method) func() {
	image, err := NewImage(m.image)
	if err != nil {
		rt.Fatal(err)
	}
	newOne := func() *Memory {
		memory, err := newMemory(uint64(m.limit), image, method)
		if err != nil {
			rt.Fatal(err)
		}
		return memory
	}
	m.memory, m.other = newOne(), newOne()
	return func() {
		for _, c := range []interface{ Close() error }{m.memory, image, m.other} {
			if err := c.Close(); err != nil {
				rt.Error(err)
			}
		}
	}
}

// fill writes random bytes, many of them zeros, at a random place and returns where.
func fill(rt *rapid.T, b []byte) (from, to int) {
	from = rapid.IntRange(0, len(b)-1).Draw(rt, "from")
	n := rapid.SampledFrom([]int{1, 8, page, 3 * page, PageBytes + 1}).Draw(rt, "length")
	to = min(from+n, len(b))
	some := rapid.SliceOfN(rapid.ByteMax(5), 1, 100).Draw(rt, "bytes")
	b = b[from:to]
	for done := copy(b, some); done < len(b); done *= 2 {
		copy(b[done:], b[:done])
	}
	return from, to
}

func (m *model) actions(method Method) map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"write": func(rt *rapid.T) {
			if len(m.want) > 0 {
				from, to := fill(rt, m.want)
				copy(m.memory.Bytes()[from:to], m.want[from:to])
			}
		},
		"write the other": func(rt *rapid.T) {
			if len(m.wants) > 0 {
				from, to := fill(rt, m.wants)
				copy(m.other.Bytes()[from:to], m.wants[from:to])
			}
		},
		"read": func(rt *rapid.T) {
			if len(m.want) > 0 {
				at := rapid.IntRange(0, len(m.want)-1).Draw(rt, "at")
				if got := m.memory.Bytes()[at]; got != m.want[at] {
					rt.Fatalf("at %d: %d, want %d", at, got, m.want[at])
				}
			}
		},
		"grow": func(rt *rapid.T) {
			size := rapid.IntRange(0, modelPages+1).Draw(rt, "pages") * PageBytes
			got := m.memory.Reallocate(uint64(size))
			if (got == nil) != (size > m.limit) && size > 0 {
				rt.Fatalf("%d bytes: nil is %v", size, got == nil)
			}
			if size <= m.limit && size > len(m.want) {
				m.want = append(m.want, make([]byte, size-len(m.want))...)
				if m.first == 0 {
					m.first = size
				}
			}
		},
		"reset": func(rt *rapid.T) {
			stats, err := m.memory.Reset()
			if err != nil {
				rt.Fatal(err)
			}
			if stats.Method != method && stats.Method != ByDrop || stats.Written > stats.Private {
				rt.Fatalf("%+v", stats)
			}
			m.pristine()
		},
		"check all": func(rt *rapid.T) {
			if !bytes.Equal(m.memory.Bytes(), m.want) {
				rt.Fatal("the memory is not as it should be")
			}
			if !bytes.Equal(m.other.Bytes(), m.wants) {
				rt.Fatal("the other memory is not as it should be")
			}
		},
	}
}

func (m *model) pristine() {
	clear(m.want)
	copy(m.want, m.image)
	m.limit = modelPages*PageBytes + min(len(m.want)-m.first, m.left)
}

// run does random things to a memory and compares it with the model.
func run(rt *rapid.T, method Method) {
	m := newModel(rt)
	defer m.open(rt, method)()
	actions := m.actions(method)
	rt.Repeat(actions)
	actions["reset"](rt)
	actions["check all"](rt)
}

func TestModel(t *testing.T) {
	t.Parallel()
	for _, method := range methods() {
		t.Run(method.String(), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) { run(rt, method) })
		})
	}
}

func FuzzModel(f *testing.F) {
	for n := range 4 {
		f.Add(bytes.Repeat([]byte(fmt.Sprintf("%c reset grow write", 'a'+n)), 64))
	}
	f.Fuzz(rapid.MakeFuzz(func(rt *rapid.T) {
		run(rt, rapid.SampledFrom(methods()).Draw(rt, "method"))
	}))
}
