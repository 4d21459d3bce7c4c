package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	root "github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/plugins/internal/flowguest"
	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

func worker() *flowguest.Worker {
	return &flowguest.Worker{
		Entries: map[string]jobhost.Handler{
			"": step(parse), "validate": step(validate), "summarise": step(summarise), "transform": step(transform), "store": step(store),
		},
		Attempt: jobhost.Attempt{Config: map[string]string{"folder": "testdata"}},
		Keys:    map[string]string{},
	}
}

// TestWorkflow runs the workflow of the manifest with the worker's own functions.
func TestWorkflow(t *testing.T) {
	t.Parallel()
	w := worker()
	got := flowguest.New(t, "manifest.toml", w).Start(map[string]any{"file": "zones.csv", "most_bad": 10}).Wait()
	if got.Status != root.WorkflowCompleted {
		t.Fatalf("%s: %v", got.Status, got.Failure)
	}
	var out struct {
		Stored   map[string]int
		Summary  summary
		Problems []problem
	}
	got.Output(&out)
	if out.Summary.Lines != 425 || out.Stored["Europe"] != 58 || len(w.Keys) != len(out.Stored)+1 {
		t.Errorf("%d lines, %d zones in Europe, %d keys", out.Summary.Lines, out.Stored["Europe"], len(w.Keys))
	}
	want := []problem{
		{30, "3 fields, not 4"},
		{77, `"br" is not the code of a country`},
		{120, `"-3327-19040" are not coordinates: -19040 is beyond 180 degrees`},
		{163, `"52.5N 13.4E" are not coordinates`},
		{201, "Europe/Madrid is in line 147 already"},
		{260, `bare " in non-quoted-field`},
		{344, `"" is not a time zone`},
	}
	if diff := cmp.Diff(want, out.Problems); diff != "" {
		t.Error(diff)
	}
	var europe []zone
	if err := json.Unmarshal([]byte(w.Keys["area/Europe"]), &europe); err != nil || europe[0] != (zone{"Europe/Andorra", "AD", 42.5, 1.5167}) {
		t.Errorf("%v: %v", europe[:1], err)
	}
}

// TestTooManyBadLines: nothing is stored, but the workflow succeeds.
func TestTooManyBadLines(t *testing.T) {
	t.Parallel()
	w := worker()
	got := flowguest.New(t, "manifest.toml", w).Start(map[string]any{"file": "zones.csv", "most_bad": 3}).Wait()
	if got.Status != root.WorkflowCompleted || got.Step("store").Status != root.StepSkipped || len(w.Keys) != 0 {
		t.Errorf("%s, store is %s, %d keys", got.Status, got.Step("store").Status, len(w.Keys))
	}
	if reason := got.Step("store").Reason; reason != "step transform was skipped" {
		t.Errorf("store was skipped since %s", reason)
	}
}

// TestNoFile: another attempt would not help.
func TestNoFile(t *testing.T) {
	t.Parallel()
	got := flowguest.New(t, "manifest.toml", worker()).Start(map[string]any{"file": "nowhere.csv", "most_bad": 3}).Wait()
	if got.Status != root.WorkflowFailed || got.EndedBy != "parse" || got.Failure.Code != "no_file" || got.Step("parse").Attempts != 1 {
		t.Errorf("%s by %s: %v", got.Status, got.EndedBy, got.Failure)
	}
}

func TestPosition(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"+4230+00131": "42.5 1.5167", "-0351-03225": "-3.85 -32.4167", "+513030-0000731": "51.5083 -0.1253",
		"+9001+00000": "", "+4230": "", "": "", "+": "", "4230+00131": "", "+42x0+00131": "", "+4230+0131": "",
	} {
		latitude, longitude, err := position(text)
		if got := strings.TrimSpace(fmt.Sprint(latitude, " ", longitude)); want != got && (want != "" || err == nil) {
			t.Errorf("%q: got %s, %v", text, got, err)
		}
	}
}
