package jobhost_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
)

// fields returns the fields of the errors joined in err, all of which must be
// invalid.
func fields(t *testing.T, err error) []string {
	t.Helper()
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		t.Fatalf("not a list of errors: %v", err)
	}
	var names []string
	for _, e := range joined.Unwrap() {
		fault, ok := errors.AsType[*jobhost.Error](e)
		if !ok || fault.Code != jobhost.CodeInvalid {
			t.Errorf("not invalid: %v", e)
			continue
		}
		names = append(names, fault.Field)
	}
	return names
}

func TestSpecCheckReportsEverything(t *testing.T) {
	t.Parallel()
	bad := jobhost.Spec{
		ID: "../../etc/passwd", Worker: "Upper", Tasks: -1, MaxAttempts: jobhost.MaxAttempts + 1,
		Timeout: -1, Retention: -1, Delay: jobhost.MaxDelay + 1, RunAt: time.Now(), Entry: "a\nb", ContentType: "\xff",
		Labels: map[string]string{"": "x"}, Priority: 6,
	}
	want := []string{"worker", "id", "tasks", "max_attempts", "timeout", "retention", "delay", "run_at", "entry", "content_type", "labels", "priority"}
	if got := fields(t, bad.Check()); !slices.Equal(got, want) {
		t.Errorf("faults at %v, want %v", got, want)
	}
}

func TestSpecCheck(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range jobhost.MaxLabels + 1 {
		many[fmt.Sprint(i)] = ""
	}
	long := strings.Repeat("x", jobhost.MaxLabelBytes+1)
	for _, tc := range []struct {
		name   string
		change func(*jobhost.Spec)
		want   string // field; empty = good
	}{
		{"only a worker", func(*jobhost.Spec) {}, ""},
		{"no worker", func(s *jobhost.Spec) { s.Worker = "" }, "worker"},
		{"most tasks", func(s *jobhost.Spec) { s.Tasks = jobhost.MaxTasks }, ""},
		{"too many tasks", func(s *jobhost.Spec) { s.Tasks = jobhost.MaxTasks + 1 }, "tasks"},
		{"longest timeout", func(s *jobhost.Spec) { s.Timeout = jobhost.MaxTimeout }, ""},
		{"longer timeout", func(s *jobhost.Spec) { s.Timeout = jobhost.MaxTimeout + 1 }, "timeout"},
		{"run at a time", func(s *jobhost.Spec) { s.RunAt = time.Now().Add(time.Hour) }, ""},
		{"run in the past", func(s *jobhost.Spec) { s.RunAt = time.Now().Add(-time.Hour) }, ""},
		{"run before 1970", func(s *jobhost.Spec) { s.RunAt = time.Unix(-1, 0) }, "run_at"},
		{"run in the year 10000", func(s *jobhost.Spec) { s.RunAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, "run_at"},
		{"two times", func(s *jobhost.Spec) { s.RunAt, s.Delay = time.Now(), 1 }, "run_at"},
		{"negative delay", func(s *jobhost.Spec) { s.Delay = -1 }, "delay"},
		{"entry with an escape", func(s *jobhost.Spec) { s.Entry = "\x1b[2J" }, "entry"},
		{"long entry", func(s *jobhost.Spec) { s.Entry = strings.Repeat("x", jobhost.MaxEntryBytes+1) }, "entry"},
		{"labels", func(s *jobhost.Spec) { s.Labels = map[string]string{"team": "réseau"} }, ""},
		{"too many labels", func(s *jobhost.Spec) { s.Labels = many }, "labels"},
		{"long label", func(s *jobhost.Spec) { s.Labels = map[string]string{long: ""} }, "labels"},
		{"long value", func(s *jobhost.Spec) { s.Labels = map[string]string{"a": long} }, "labels"},
		{"NUL in a value", func(s *jobhost.Spec) { s.Labels = map[string]string{"a": "\x00"} }, "labels"},
		{"last priority", func(s *jobhost.Spec) { s.Priority = jobhost.Background }, ""},
		{"no priority", func(s *jobhost.Spec) { s.Priority = jobhost.Background + 1 }, "priority"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			spec := jobhost.Spec{Worker: "w"}
			tc.change(&spec)
			err := spec.Check()
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if got := fields(t, err); !slices.Equal(got, []string{tc.want}) {
				t.Errorf("faults at %v, want %s", got, tc.want)
			}
		})
	}
}

func ExampleSpec_Check() {
	spec := jobhost.Spec{Worker: "Word Count", Tasks: -3}
	fmt.Println(spec.Check())
	// Output:
	// "Word Count" is not a worker name
	// tasks -3 is not between 0 and 10000
}
