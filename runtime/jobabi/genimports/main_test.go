package main

import (
	"os"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/runtime/jobabi"
)

// TestLists: the lists of all SDKs are what is generated from the table.
func TestImportLists(t *testing.T) {
	t.Parallel()
	for _, l := range lists() {
		old, err := os.ReadFile("../../../" + l.file)
		if err != nil {
			t.Fatal(err)
		}
		text, err := l.apply(string(old))
		if err != nil {
			t.Error(err)
		} else if text != string(old) {
			t.Errorf("%s differs from the table in runtime/jobabi: run make imports", l.file)
		}
		for _, f := range jobabi.Functions() {
			if has := strings.Contains(l.line(f), f.Name); !has {
				t.Errorf("%s: %q doesn't name %s", l.file, l.line(f), f.Name)
			}
		}
	}
}

// TestUpdate: an outdated list is rewritten, and nothing around it.
func TestUpdate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := list{file: "f", comment: "#", line: func(f jobabi.Function) string { return "  " + f.Name + "\n" }, without: []string{"input"}}
	if err := l.update(dir); err == nil {
		t.Error("a file that isn't there was written")
	}
	write := func(text string) {
		if err := os.WriteFile(dir+"/f", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("head\n  # " + begin + "\nold\n")
	if err := l.update(dir); err == nil || !strings.Contains(err.Error(), "f lacks the lines") {
		t.Errorf("without an end: %v", err)
	}
	write("head\n  # " + begin + "\nold\n  # " + end + "\ntail\n")
	if err := l.update(dir); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(dir + "/f")
	if err != nil {
		t.Fatal(err)
	}
	if text := string(got); !strings.HasPrefix(text, "head\n  # "+begin+"\n  output\n") || !strings.HasSuffix(text, "\n  # "+end+"\ntail\n") || strings.Contains(text, "input") {
		t.Errorf("got %s", text)
	}
}
