package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClipName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "run", strings.Repeat("x", mostNameBytes)} {
		if got := clipName(name); got != name {
			t.Errorf("%q became %q", name, got)
		}
	}
	for _, name := range []string{strings.Repeat("x", mostNameBytes+1), strings.Repeat("€", 1000), strings.Repeat("\xff", 1000)} {
		got := clipName(name)
		if rest, cut := strings.CutSuffix(got, "…"); !cut || len(rest) > mostNameBytes || !utf8.ValidString(got) {
			t.Errorf("%q", got)
		}
	}
}

func TestJoinNames(t *testing.T) {
	t.Parallel()
	names := make([]string, 250)
	for n := range names {
		names[n] = "n"
	}
	if got := joinNames(names[:mostNames], ", "); strings.Count(got, "n") != mostNames || strings.Contains(got, "more") {
		t.Errorf("%q", got)
	}
	if got := joinNames(names, ", "); !strings.HasSuffix(got, ", n, … and 150 more") {
		t.Errorf("%q", got)
	}
}

// section is a section of a module.
func section(id byte, content []byte) []byte {
	return append(binary.AppendUvarint([]byte{id}, uint64(len(content))), content...)
}

// exporting is a module that exports its one function, an entry, under names.
func exporting(names ...string) []byte {
	exports := binary.AppendUvarint(nil, uint64(len(names)+1))
	add := func(name string, kind byte) {
		exports = binary.AppendUvarint(exports, uint64(len(name)))
		exports = append(append(exports, name...), kind, 0)
	}
	add("memory", 2)
	for _, name := range names {
		add(name, 0)
	}
	return bytes.Join([][]byte{
		{0, 'a', 's', 'm', 1, 0, 0, 0},
		section(1, []byte{1, 0x60, 1, 0x7f, 1, 0x7e}), // (i32) → i64
		section(3, []byte{1, 0}),
		section(5, []byte{1, 0, 1}),
		section(7, exports),
		section(10, []byte{1, 4, 0, 0x42, 0, 0x0b}), // i64.const 0
	}, nil)
}

// TestInspectNames: how much is printed about a module is not its author's choice.
func TestInspectNames(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	many := make([]string, 900)
	for n := range many {
		many[n] = fmt.Sprintf("entry%03d%s", n, strings.Repeat("x", 300))
	}
	for _, tc := range []struct {
		name  string
		names []string
		most  int // bytes of a table
		shown string
	}{
		{"long", []string{"jh_run", strings.Repeat("y", 30<<20)}, 4 << 10, "jh_run, " + strings.Repeat("y", mostNameBytes) + "…"},
		{"long default", []string{strings.Repeat("z", 30<<20)}, 4 << 10, ""},
		{"many", append(many, "jh_run"), 64 << 10, "… and 801 more"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "names.wasm")
			if err := os.WriteFile(path, exporting(tc.names...), 0o600); err != nil {
				t.Fatal(err)
			}
			table := inspectNames(t, path)
			if len(table) > tc.most || !strings.Contains(table, tc.shown) {
				t.Errorf("%d bytes: %.1000s", len(table), table)
			}
			if tc.shown == "" {
				return // it can't be loaded
			}
			var got inspection
			if err := json.Unmarshal([]byte(inspectNames(t, path, "-o", "json")), &got); err != nil {
				t.Fatal(err)
			}
			if len(got.Entries) != len(tc.names) {
				t.Errorf("%d entries instead of %d", len(got.Entries), len(tc.names))
			}
			for _, name := range got.Entries {
				if len(name) > mostNameBytes+len("…") {
					t.Errorf("an entry of %d bytes", len(name))
				}
			}
		})
	}
}

// inspectNames returns what `worker inspect` prints, errors included.
func inspectNames(t *testing.T, path string, flags ...string) string {
	t.Helper()
	var out bytes.Buffer
	run(append([]string{"worker", "inspect", path}, flags...), strings.NewReader(""), &out, &out)
	return out.String()
}
