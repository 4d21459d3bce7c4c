package jobhost_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
)

// step is a transition of a task.
type step struct{ from, to jobhost.State }

// TestDocumentedSteps compares the table and the diagram of docs/states.md
// with what the code allows.
func TestDocumentedSteps(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docs/states.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, pattern := range map[string]string{
		"table":   `(?m)^\| (\w+) \| (\w+) \| [^|]+\| [^|]+\| [^|]+\|$`,
		"diagram": `(?m)^    (scheduled|ready|held|running|retrying|dead|cancelled) --> (\w+): (?:its time|its deadline|may not|cancel|a slot|the reason|success|failure|snooze|taken back|retry)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			documented := map[step]bool{}
			for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
				from, err1 := jobhost.ParseState(m[1])
				to, err2 := jobhost.ParseState(m[2])
				if err1 != nil || err2 != nil {
					continue // the heading
				}
				documented[step{from, to}] = true
			}
			for _, from := range jobhost.States() {
				for _, to := range jobhost.States() {
					if got, want := documented[step{from, to}], from.CanBecome(to); got != want {
						t.Errorf("%v to %v: documented %v, possible %v", from, to, got, want)
					}
				}
			}
		})
	}
}

func TestStatesEndAsTheySay(t *testing.T) {
	t.Parallel()
	for _, s := range jobhost.States() {
		want := s == jobhost.Succeeded || s == jobhost.Dead || s == jobhost.Cancelled
		if s.Ended() != want {
			t.Errorf("%v ended: %v", s, s.Ended())
		}
		if s.CanBecome(s) {
			t.Errorf("%v becomes itself", s)
		}
		for _, next := range jobhost.States() {
			if s.Ended() && s.CanBecome(next) && next != jobhost.Ready {
				t.Errorf("%v has ended and becomes %v", s, next)
			}
		}
	}
	if jobhost.State(0).CanBecome(jobhost.Ready) || jobhost.State(99).CanBecome(jobhost.Ready) {
		t.Error("what is not a state becomes ready")
	}
}

// TestEveryOpenStateCanEnd follows the transitions: no task can be stuck
// forever.
func TestEveryOpenStateCanEnd(t *testing.T) {
	t.Parallel()
	for _, end := range []jobhost.State{jobhost.Succeeded, jobhost.Dead, jobhost.Cancelled} {
		for _, start := range jobhost.States() {
			if !start.Ended() && !reaches(start, end, map[jobhost.State]bool{}) {
				t.Errorf("%v never becomes %v", start, end)
			}
		}
	}
}

func reaches(from, to jobhost.State, seen map[jobhost.State]bool) bool {
	if from == to {
		return true
	}
	seen[from] = true
	return slices.ContainsFunc(jobhost.States(), func(next jobhost.State) bool {
		return from.CanBecome(next) && !seen[next] && reaches(next, to, seen)
	})
}

func TestStateText(t *testing.T) {
	t.Parallel()
	for _, s := range jobhost.States() {
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back jobhost.State
		if err := json.Unmarshal(text, &back); err != nil || back != s {
			t.Errorf("%s came back as %v: %v", text, back, err)
		}
	}
	for _, s := range []string{"", "Ready", "state(0)", "ready "} {
		if got, err := jobhost.ParseState(s); jobhost.CodeOf(err) != jobhost.CodeInvalid || jobhost.HintOf(err) == "" {
			t.Errorf("%q is %v: %v", s, got, err)
		}
	}
	for s, want := range map[jobhost.State]string{0: "state(0)", 9: "state(9)", 255: "state(255)"} {
		if s.String() != want {
			t.Errorf("%d is called %v", uint8(s), s)
		}
	}
}

// TestJobState compares JobState with its description, task by task.
func TestJobState(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tasks := rapid.SliceOfN(rapid.SampledFrom(jobhost.States()), 1, 6).Draw(t, "tasks")
		var counts jobhost.Counts
		open := 0
		for _, s := range tasks {
			counts[s]++
			if !s.Ended() {
				open++
			}
		}
		got := jobhost.JobState(&counts)
		if counts.Total() != int64(len(tasks)) {
			t.Fatalf("total %d of %v", counts.Total(), tasks)
		}
		if got.Ended() != (open == 0) {
			t.Fatalf("%v of %v, of which %d are open", got, tasks, open)
		}
		if !slices.Contains(tasks, got) {
			t.Fatalf("%v of %v", got, tasks)
		}
		if got == jobhost.Succeeded && counts[jobhost.Succeeded] != counts.Total() {
			t.Fatalf("succeeded with %v", tasks)
		}
		if slices.Contains(tasks, jobhost.Running) && got != jobhost.Running {
			t.Fatalf("%v with a running task", got)
		}
		if n := counts.Numbers(); n[got.String()] != counts[got] || len(n) > len(tasks) {
			t.Fatalf("numbers %v of %v", n, tasks)
		}
	})
}

func ExampleJobState() {
	tasks := jobhost.Counts{jobhost.Succeeded: 7, jobhost.Dead: 1}
	fmt.Println(jobhost.JobState(&tasks))
	tasks[jobhost.Retrying] = 2
	fmt.Println(jobhost.JobState(&tasks))
	// Output:
	// dead
	// retrying
}
