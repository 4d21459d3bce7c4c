package main

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost/plugins/internal/guesttest"
	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

// The sample's first lines are in two overlapping pieces, as shippers send them.
func pieces(t *testing.T) (first, second string) {
	t.Helper()
	data, err := os.ReadFile("testdata/access.log")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	return strings.Join(lines[:8], ""), strings.Join(lines[5:], "")
}

var wantVisits = map[string]string{
	"visits/": "4", "visits/about.html": "3", "visits/shop/cart": "2", "visits/shop/item": "3",
}

// visitsOf leaves out the keys that remember lines.
func visitsOf(keys map[string]string) map[string]string {
	kept := maps.Clone(keys)
	maps.DeleteFunc(kept, func(key, _ string) bool { return strings.HasPrefix(key, "seen/") })
	return kept
}

func TestVisits(t *testing.T) {
	t.Parallel()
	first, second := pieces(t)
	at := jobhost.Attempt{Input: []byte(first), Config: map[string]string{"announce": "crawl"}, MaySubmit: []string{"crawl"}}
	one := jobhost.Run(visits, at)
	if one.Err != nil || string(one.Output) != "8 new, 0 repeated\n" || len(one.Submitted) != 3 {
		t.Fatalf("%q, %v, %q", one.Output, one.Err, one.Submitted)
	}
	at.Input, at.Keys = []byte(second), one.Keys
	two := jobhost.Run(visits, at)
	if two.Err != nil || string(two.Output) != "4 new, 3 repeated\n" {
		t.Fatalf("%q, %v", two.Output, two.Err)
	}
	if diff := cmp.Diff(wantVisits, visitsOf(two.Keys)); diff != "" {
		t.Error(diff)
	}
	if len(two.Submitted) != 1 || !strings.HasSuffix(two.Submitted[0], "\n\n/shop/cart") {
		t.Errorf("announced %q", two.Submitted)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	long := jobhost.Run(visits, jobhost.Attempt{Input: []byte(strings.Repeat("x\n", mostLines+1))})
	if long.Err == nil || !strings.Contains(long.Err.Error(), "split the log") {
		t.Errorf("%v", long.Err)
	}
	first, _ := pieces(t)
	denied := jobhost.Run(visits, jobhost.Attempt{Input: []byte(first), Config: map[string]string{"announce": "crawl"}})
	if denied.Err == nil || len(denied.Keys) != 0 {
		t.Errorf("%v, %v", denied.Err, denied.Keys)
	}
}

// TestGuest: the worker does the same in wasm.
func TestGuest(t *testing.T) {
	t.Parallel()
	g := guesttest.Start(t, guesttest.Build(t, "."))
	keys := map[string]string{}
	var jobs []string
	first, second := pieces(t)
	for _, piece := range []string{first, second} {
		g.Attempt = &guesttest.Attempt{Input: []byte(piece), Keys: keys, Info: map[string]string{"config.announce": "crawl"}}
		if err := g.Call("jh_run"); err != nil {
			t.Fatal(err)
		}
		if g.Attempt.Kind != 0 {
			t.Fatalf("failed: %s", g.Attempt.Failure)
		}
		jobs = append(jobs, g.Attempt.Jobs...)
	}
	if diff := cmp.Diff(wantVisits, visitsOf(keys)); diff != "" {
		t.Error(diff)
	}
	if len(jobs) != 4 || !strings.HasPrefix(jobs[0], "0 worker: crawl\nid: page-") {
		t.Errorf("announced %q", jobs)
	}
}

func FuzzPageOf(f *testing.F) {
	f.Add(`192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "GET /index.html?q=1 HTTP/1.1" 200 2326`)
	f.Add(`"GET /" x`)
	f.Add("\"GET /\x00\xff\" 1")
	f.Fuzz(func(t *testing.T, line string) {
		if page := pageOf(line); page != "" && page[0] != '/' || strings.ContainsAny(page, "?\n\x00") {
			t.Errorf("%q is page %q", line, page)
		}
	})
}
