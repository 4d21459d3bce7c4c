package main

import (
	"os"
	"testing"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	const rest = " S 7 1 1 0 -1 4194560 1 2 3 4 11 13 17 19 20 0 1 0 100 200 300"
	for _, tt := range []struct {
		name, line string
		pid        int
		want       process
		bad        bool
	}{
		{"a name", "42 (postgres)" + rest, 42, process{parent: 7, ticks: 60}, false},
		{"a name like a field", "42 (a) S 9 (b)" + rest, 42, process{parent: 7, ticks: 60}, false},
		{"no name", "42 postgres" + rest, 0, process{}, true},
		{"too short", "42 (postgres) S 7", 0, process{}, true},
		{"no number", "x (postgres)" + rest, 0, process{}, true},
		{"nothing", "", 0, process{}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			pid, p, err := parseStat([]byte(tt.line))
			if pid != tt.pid || p != tt.want || (err != nil) != tt.bad {
				t.Errorf("%d, %+v, %v", pid, p, err)
			}
		})
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (a) b) S 7 1 1 0 -1 4194560 1 2 3 4 11 13 17 19 20"))
	f.Add([]byte(") ("))
	f.Fuzz(func(_ *testing.T, line []byte) { _, _, _ = parseStat(line) })
}

// TestTreeTime looks for this process below its parent.
func TestTreeTime(t *testing.T) {
	t.Parallel()
	for range 1 << 20 { // something to count, if it is little
		_ = os.Getpid()
	}
	own, err := treeTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	family, err := treeTime(os.Getppid())
	if err != nil {
		t.Fatal(err)
	}
	if family < own {
		t.Errorf("%v of the parent and its descendants are less than the %v of one of them", family, own)
	}
	if _, err := treeTime(1 << 30); err == nil {
		t.Error("a process that is not there has used time")
	}
}

func TestDescends(t *testing.T) {
	t.Parallel()
	all := map[int]process{1: {parent: 0}, 2: {parent: 1}, 3: {parent: 2}, 8: {parent: 9}, 9: {parent: 8}}
	for _, tt := range []struct {
		name      string
		pid, root int
		want      bool
	}{
		{"itself", 2, 2, true},
		{"grandchild", 3, 1, true},
		{"parent", 1, 2, false},
		{"a circle", 8, 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := descends(all, tt.pid, tt.root); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}
