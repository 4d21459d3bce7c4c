package main

import (
	"slices"
	"testing"

	"github.com/jobhost/jobhost/runtime/extismabi"
	"github.com/jobhost/jobhost/runtime/jobabi"
	"github.com/jobhost/jobhost/runtime/wasiabi"
)

// TestMeanings: each function that a host offers belongs to one capability, and
// there is no capability without one.
func TestMeanings(t *testing.T) {
	t.Parallel()
	var offered []string
	for _, f := range jobabi.Functions() {
		offered = append(offered, jobabi.Module+"."+f.Name)
	}
	for _, f := range wasiabi.Functions() {
		offered = append(offered, wasiabi.Module+"."+f.Name)
	}
	for _, f := range extismabi.Functions() {
		offered = append(offered, extismabi.Module+"."+f.Name)
	}
	used := map[string]bool{}
	for _, name := range offered {
		found := 0
		for i := range meanings {
			if meanings[i].matches(name) {
				used[meanings[i].module+meanings[i].means] = true
				found++
			}
		}
		if found != 1 {
			t.Errorf("%s belongs to %d capabilities", name, found)
		}
	}
	for _, m := range meanings {
		if !used[m.module+m.means] {
			t.Errorf("%s of %s has no function", m.means, m.module)
		}
	}
}

func TestCapabilities(t *testing.T) {
	t.Parallel()
	got := capabilities([]string{"jobhost1.log", "jobhost1.log_level", "jobhost1.logger", "lib.log", "wasi_snapshot_preview1.fd_read"})
	want := [][]string{
		{"jobhost1.log", "jobhost1.log_level"},
		{"wasi_snapshot_preview1.fd_read"},
		{"jobhost1.logger", "lib.log"},
	}
	if !slices.EqualFunc(got, want, func(c capability, imports []string) bool { return slices.Equal(c.Imports, imports) }) {
		t.Errorf("%v", got)
	}
	if got := capabilities(nil); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}
