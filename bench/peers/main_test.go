package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestMain lets the test's own binary be the measuring process.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == measureCommand {
		os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// TestSmoke measures jobhost with a few jobs, which needs no database.
func TestSmoke(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if code := run([]string{"-smoke", "-json", "-dir", t.TempDir()}, nil, &out, t.Output()); code != 0 {
		t.Fatalf("exit %d", code)
	}
	var c comparison
	if err := json.Unmarshal([]byte(out.String()), &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Results) != 1 {
		t.Fatalf("%d results, want 1", len(c.Results))
	}
	r := c.Results[0]
	want := delivery{Acknowledged: c.Load.jobs()}
	if r.Delivery != want {
		t.Errorf("delivery %+v, want %+v", r.Delivery, want)
	}
	if r.Single.Done <= 0 || r.Single.Enqueued < r.Single.Done || r.Batched.Done <= 0 || r.Single.CPU <= 0 {
		t.Errorf("impossible figures: %+v, %+v", r.Single, r.Batched)
	}
	if q := r.Quiet; q.Run50 <= 0 || q.Done50 < q.Run50 || q.Done99 < q.Done50 {
		t.Errorf("impossible times: %+v", q)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, args, err string
	}{
		{"as they are", "", ""},
		{"one system", "-systems river", ""},
		{"unknown system", "-systems river,cron", `no system "cron"`},
		{"no rounds", "-rounds 0", "at least 1"},
		{"too short for a job at the quiet pace", "-quiet 1ms", "at least 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := parseOptions(strings.Fields(tt.args), t.Output())
			switch {
			case tt.err == "" && err != nil:
				t.Error(err)
			case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}
