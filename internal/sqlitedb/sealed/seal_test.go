package sealed

import (
	"bytes"
	"io"
	"testing"
)

func TestSealBindsPageAndContent(t *testing.T) {
	t.Parallel()
	p := bytes.Repeat([]byte("jobhost "), 512)
	seal(7, p, sum(7, p))
	if !isSealed(7, p, sum(7, p)) {
		t.Fatal("a page that was just sealed isn't")
	}
	for page := uint32(1); page < 2000; page++ {
		if page != 7 && isSealed(page, p, sum(page, p)) {
			t.Fatalf("page 7 is taken for page %d", page)
		}
		if zeros := make([]byte, 4096); isSealed(page, zeros, sum(page, zeros)) {
			t.Fatalf("zeros are taken for page %d", page)
		}
	}
	for i := range p {
		p[i] ^= 0x10
		if isSealed(7, p, sum(7, p)) {
			t.Fatalf("a flipped bit in byte %d is not seen", i)
		}
		p[i] ^= 0x10
	}
}

// memory is a file.
type memory struct{ b []byte }

func (m *memory) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(m.b)) {
		return 0, io.EOF
	}
	n := copy(p, m.b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (m *memory) WriteAt(p []byte, off int64) (int, error) {
	if end := int(off) + len(p); end > len(m.b) {
		m.b = append(m.b, make([]byte, end-len(m.b))...)
	}
	return copy(m.b[off:], p), nil
}

func (m *memory) Sync() error  { return nil }
func (m *memory) Close() error { return nil }

// Whatever byte of the witness is damaged, it says what is true: the last mark, or the one before.
func TestDamagedWitness(t *testing.T) {
	t.Parallel()
	file, g := &memory{}, Generation{1, 2, 3}
	w, err := OpenWitness(file, [16]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.begin(g); err != nil {
		t.Fatal(err)
	}
	frames := []frame{{page: 3, sum: 5}, {page: 4, size: 9, sum: 6}, {page: 3, size: 9, sum: 7}}
	w.put(g, 0, frames)
	w.acknowledge(Mark{Generation: g, Frames: 2}, true)
	w.acknowledge(Mark{Generation: g, Frames: 3}, true)
	whole := bytes.Clone(file.b)
	for i := range whole {
		file.b = bytes.Clone(whole)
		file.b[i] ^= 1
		w, err := OpenWitness(file, [16]byte{1})
		if err != nil {
			t.Fatal(err)
		}
		if m := w.Acknowledged(); m.Generation != g || m.Frames != 2 && m.Frames != 3 {
			t.Fatalf("byte %d: %+v", i, m)
		}
		got, err := w.entries(g)
		if err != nil || len(got) > len(frames) || i >= entriesAt == (len(got) == len(frames)) {
			t.Fatalf("byte %d: %d entries, %v", i, len(got), err)
		}
		for k := range got {
			if got[k] != frames[k] {
				t.Fatalf("byte %d: entry %d is %+v", i, k, got[k])
			}
		}
	}
	file.b = whole
	if other, err := w.entries(Generation{9}); err != nil || len(other) != 0 {
		t.Errorf("another generation has %d entries, %v", len(other), err)
	}
}

// After another boot only what was synced counts.
func TestMarksAfterALossOfPower(t *testing.T) {
	t.Parallel()
	file := &memory{}
	w, err := OpenWitness(file, [16]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	w.acknowledge(Mark{Frames: 2}, true)
	w.acknowledge(Mark{Frames: 3}, false)
	for boot, want := range map[byte]int{1: 3, 2: 2} {
		again, err := OpenWitness(file, [16]byte{boot})
		if err != nil || again.Acknowledged().Frames != want {
			t.Errorf("boot %d: %d frames, want %d, %v", boot, again.Acknowledged().Frames, want, err)
		}
	}
}
