package cluster

import (
	"bytes"
	"testing"
)

func TestFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func(place, key string) *folder {
		t.Helper()
		f, err := openFolder(dir, place, []byte(key))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	closeIt := func(f *folder) {
		t.Helper()
		if err := f.close(); err != nil {
			t.Fatal(err)
		}
	}
	first := open("here", "first")
	if len(first.former) != 0 {
		t.Errorf("a new folder tells of %q", first.former)
	}
	if second := open("here", "second"); second != nil {
		t.Error("two hosts have one folder")
	}
	closeIt(first)
	for i := range byte(20) {
		closeIt(open("here", string('a'+i)))
	}
	last := open("here", "last")
	if n := len(last.former); n != keptKeys || !bytes.Equal(last.former[0], []byte{'a' + 19}) {
		t.Errorf("it tells of %d processes: %q", n, last.former)
	}
	closeIt(last)
	copied := open("elsewhere", "copied")
	if len(copied.former) != 0 {
		t.Errorf("a copy tells of %q", copied.former)
	}
	closeIt(copied)
}
