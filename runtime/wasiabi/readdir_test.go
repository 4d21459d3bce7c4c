package wasiabi_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/runtime/wasiabi"
)

func TestReaddir(t *testing.T) {
	t.Parallel()
	b, dir := mounted(t, wasiabi.Config{})
	want := map[string]byte{".": 3, "..": 3, "d": 3, "link": 7}
	tree(t, dir, map[string]string{"d/": "", "link": "->d"})
	for i := range 200 {
		name := fmt.Sprintf("%03d-%s", i, strings.Repeat("n", i))
		tree(t, dir, map[string]string{name: ""})
		want[name] = 4
	}
	for _, size := range []uint64{24 + 255, 1000, 40000} {
		got, cookies := map[string]byte{}, []uint64{0}
		for {
			names, kinds, nexts, full := b.list(cookies[len(cookies)-1], size)
			for i, name := range names {
				got[name] = kinds[i]
			}
			cookies = append(cookies, nexts...)
			if !full {
				break
			}
			if len(names) == 0 {
				t.Fatalf("no progress with %d bytes", size)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || len(cookies) != len(want)+1 {
			t.Errorf("with %d bytes: %d entries, %d cookies", size, len(got), len(cookies))
		}
		// Back, and to nowhere.
		names, _, _, _ := b.list(cookies[5], 1000)
		again, _, _, _ := b.list(cookies[5], 1000)
		if len(names) == 0 || names[0] != again[0] {
			t.Errorf("at cookie 5: %q, then %q", names, again)
		}
		for _, cookie := range []uint64{uint64(len(want)), 1 << 40, math.MaxUint64 - 1, math.MaxUint64} {
			if names, _, _, full := b.list(cookie, 1000); len(names) != 0 || full {
				t.Errorf("at cookie %d: %q", cookie, names)
			}
		}
	}
	tree(t, dir, map[string]string{"late": ""})
	names, _, _, _ := b.list(0, 60000)
	if !strings.Contains(strings.Join(names, " "), "late") {
		t.Error("starting over doesn't show new entries")
	}
}

// list reads entries of the mount that are whole, and whether there may be more.
func (b *box) list(cookie, size uint64) (names []string, kinds []byte, nexts []uint64, full bool) {
	const buf = 2048
	b.t.Helper()
	b.must("fd_readdir", mountFD, buf, size, cookie, result)
	used := uint64(b.u32())
	entries := b.memory.b[buf:][:used]
	for len(entries) >= 24 {
		n := int(binary.LittleEndian.Uint32(entries[16:]))
		if len(entries) < 24+n {
			break
		}
		nexts = append(nexts, binary.LittleEndian.Uint64(entries))
		kinds = append(kinds, entries[20])
		names = append(names, string(entries[24:][:n]))
		entries = entries[24+n:]
	}
	return names, kinds, nexts, used == size
}
