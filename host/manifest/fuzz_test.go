package manifest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// FuzzParse checks for any bytes that Parse gives either faults that are fit
// to print, or a manifest that shows as itself.
func FuzzParse(f *testing.F) {
	seed(f)
	opts := setup(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parse("manifest.toml", data, opts)
		if err == nil {
			roundTrip(t, m, opts)
			return
		}
		faults, ok := errors.AsType[Faults](err)
		if !ok || len(faults) == 0 || len(faults) > maxFaults+1 {
			t.Fatalf("%d faults in %T", len(faults), err)
		}
		for _, fault := range faults {
			text := fault.Error()
			if len(text) > 2000 || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Fatalf("not fit to print: %q", text)
			}
		}
	})
}

// FuzzScan checks for every text that the TOML library accepts that scan finds
// the same keys, where they are.
func FuzzScan(f *testing.F) {
	seed(f)
	f.Add([]byte("a={b={c=1,d=[{e=2},{f.g=3}]}, h=1}\n[[x]]\ny=1\n[[x]]\ny=2\n[w.\"q]#\"] # ]\nz.k . 'j='=1\n"))
	f.Add([]byte("a=\"\"\"x\\\"\"\"\"\"\"\nb='''y'''''\nc=[1,\n# ]\n'#',\"\\\"\"]\nd=1979-05-27 07:32:00\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		text := string(data)
		s := scan(text)
		for _, p := range s.places {
			if p.key < 0 || p.value < p.key || p.value > len(text) {
				t.Fatalf("impossible place %v in %d bytes", p, len(text))
			}
		}
		if s.limit != "" || !utf8.ValidString(text) || strings.HasPrefix(text, "\ufeff") {
			return
		}
		var doc map[string]any
		meta, err := toml.Decode(text, &doc)
		if err != nil {
			return
		}
		keys := meta.Keys()
		if len(keys) != len(s.places) {
			t.Fatalf("%d keys %q, but %d places %v", len(keys), keys, len(s.places), s.places)
		}
		for i, key := range keys {
			rest := strings.TrimLeft(text[s.places[i].key:], "[ \t")
			last := key[len(key)-1]
			line, _, _ := strings.Cut(rest, "\n")
			if bare(last) && !strings.Contains(line, last) && !strings.ContainsAny(line, `\`) {
				t.Fatalf("key %q is not at %q", key, line)
			}
		}
	})
}

func seed(f *testing.F) {
	files, err := filepath.Glob("testdata/*.toml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
}
