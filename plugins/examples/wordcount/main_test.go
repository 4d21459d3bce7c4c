package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost/plugins/internal/guesttest"
	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// texts returns the names of the texts that have a golden file.
func texts(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatalf("no texts: %v", err)
	}
	return names
}

// golden compares with the golden file of a text, or writes it.
func golden(t *testing.T, text string, got []byte) {
	t.Helper()
	name := strings.TrimSuffix(text, ".txt") + ".golden"
	if *update {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(guesttest.Read(t, name)), string(got)); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
}

func TestWordcount(t *testing.T) {
	t.Parallel()
	for _, text := range texts(t) {
		t.Run(filepath.Base(text), func(t *testing.T) {
			t.Parallel()
			got := jobhost.Run(wordcount, jobhost.Attempt{Input: guesttest.Read(t, text)})
			if got.Err != nil {
				t.Fatal(got.Err)
			}
			golden(t, text, got.Output)
		})
	}
}

// TestGuest: the worker does the same in wasm.
func TestGuest(t *testing.T) {
	t.Parallel()
	g := guesttest.Start(t, guesttest.Build(t, "."))
	for _, text := range texts(t) {
		golden(t, text, g.Run(guesttest.Read(t, text)).Output)
	}
}

func FuzzCount(f *testing.F) {
	f.Add([]byte("Don't\xff \u00c4 \u2028 ... x\n\ny"))
	f.Add([]byte("\xe2\x80\xa8a\x80\xa8 b\u0085c\xe2"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := count(text)
		if want := len(bytes.Fields(text)); r.Words != want || r.Bytes != len(text) || len(r.Top) > top || r.Distinct > want {
			t.Errorf("%+v of %d words", r, want)
		}
		var out bytes.Buffer
		if err := encode(&out, r); err != nil || !json.Valid(out.Bytes()) {
			t.Errorf("%s, %v", &out, err)
		}
	})
}

func BenchmarkCount(b *testing.B) {
	text := bytes.Repeat([]byte("It was the best of times, it was the worst of times.\n"), 100)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		count(text)
	}
}
