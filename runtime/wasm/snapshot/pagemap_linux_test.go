package snapshot

import (
	"encoding/binary"
	"os"
	"slices"
	"testing"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	const (
		none    = 0
		clean   = entryPresent | entryFile
		written = entryPresent
		swapped = entrySwapped | 5
		shared  = entrySwapped | entryFile // a page of shared memory
	)
	for _, tc := range []struct {
		name    string
		entries []uint64
		want    [][2]int // in pages
	}{
		{"nothing", nil, nil},
		{"untouched", []uint64{none, none}, nil},
		{"only read", []uint64{clean, shared}, nil},
		{"one", []uint64{none, written, none}, [][2]int{{1, 2}}},
		{"swapped out", []uint64{swapped, clean}, [][2]int{{0, 1}}},
		{"neighbours", []uint64{written, swapped, written, none, written}, [][2]int{{0, 3}, {4, 5}}},
		{"at the end", []uint64{clean, written}, [][2]int{{1, 2}}},
		{"with other bits", []uint64{written | 1<<55 | 12345, clean | 1<<56}, [][2]int{{0, 1}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var entries []byte
			for _, e := range tc.entries {
				entries = binary.NativeEndian.AppendUint64(entries, e)
			}
			var want []span
			for _, pages := range tc.want {
				want = append(want, span{start: pages[0] * page, end: pages[1] * page})
			}
			f := acquireFinder()
			defer f.release()
			if got := f.decode(entries); !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}

func TestOpenPageMap(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/proc/self/no-such-file", os.DevNull, "/proc/self/maps"} {
		if got := openPageMap(path); got != (openMap{-1, ByDrop}) {
			t.Errorf("%s: %+v", path, got)
		}
	}
	if got := pagemap(); got.fd < 0 {
		t.Logf("this system has no page map: %+v", got)
	}
}

// TestDecodeMost decodes as many spans as there can be.
func TestDecodeMost(t *testing.T) {
	t.Parallel()
	f := acquireFinder()
	defer f.release()
	clear(f.entries[:])
	for i := 0; i < mapEntries; i += 2 {
		binary.NativeEndian.PutUint64(f.entries[8*i:], entryPresent)
	}
	got := f.decode(f.entries[:])
	if len(got) != maxSpans || &got[0] != &f.spans[0] {
		t.Errorf("%d spans", len(got))
	}
}
