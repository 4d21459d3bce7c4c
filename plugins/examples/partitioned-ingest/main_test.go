package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

// part runs the task of a part.
func part(task int) *jobhost.Result {
	return jobhost.Run(ingest, jobhost.Attempt{ID: "march", Task: task, Tasks: 8, Config: map[string]string{"folder": "testdata"}})
}

func steps(r *jobhost.Result) []string {
	var all []string
	for _, s := range r.States {
		all = append(all, fmt.Sprintf("%s %d %s", s.Tag, s.Status, s.Message))
	}
	return all
}

func TestIngest(t *testing.T) {
	t.Parallel()
	got := part(5)
	want := []string{
		"ingest 1 🟢 Started", "ingest 40 40 rows", "ingest 80 80 rows", "ingest 120 120 rows", "ingest 2147483647 ⚫ Finished",
		"process 1 🟢 Started", "process -2 🟡 2 of 124 rows have no number", "process 2147483647 ⚫ Finished",
		"export 2147483647 ⚫ freiburg",
	}
	if diff := cmp.Diff(want, steps(got)); diff != "" || got.Err != nil {
		t.Errorf("%v\n%s", got.Err, diff)
	}
	if !strings.HasPrefix(string(got.Output), `{"station":"freiburg","rows":124,"bad":2,`) {
		t.Errorf("the result is %s", got.Output)
	}
}

// TestNoPart: a task without its part reports that.
func TestNoPart(t *testing.T) {
	t.Parallel()
	got := part(99)
	if got.Err == nil || len(got.States) != 1 || got.States[0].Status != jobhost.StateError {
		t.Errorf("%v, %v", got.Err, steps(got))
	}
}

// TestReport: the second worker waits for the last of all tasks.
func TestReport(t *testing.T) {
	t.Parallel()
	var reports []jobhost.Report
	for task := range 8 {
		for _, s := range part(task).States {
			s.Job, s.Task = "march", task
			reports = append(reports, jobhost.Report{After: time.Duration(8-task) * time.Second, State: s})
		}
	}
	at := jobhost.Attempt{ID: "report", Input: []byte("march"), Reports: reports}
	got := jobhost.Run(report, at)
	lines := strings.Split(strings.TrimSpace(string(got.Output)), "\n")
	if got.Err != nil || len(lines) != 9 || !strings.HasPrefix(lines[1], "aachen ") || !strings.HasPrefix(lines[8], "hannover ") {
		t.Errorf("%v\n%s", got.Err, got.Output)
	}
	at.Reports = reports[:5] // the others never report
	if got := jobhost.Run(report, at); !errors.Is(got.Err, jobhost.ErrTimeout) {
		t.Errorf("without the others: %v", got.Err)
	}
}
