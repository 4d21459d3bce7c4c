package host_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/hosttest"
	"github.com/jobhost/jobhost/internal/testing/guests"
)

// effectHost runs guests.Effects as "test", which may submit to itself, and as
// "other", which may submit to nobody.
func effectHost(t *testing.T, change ...func(*host.Config)) *hosttest.Host {
	t.Helper()
	cfg := config(t)
	test := cfg.Workers[0]
	test.Plugin, test.Entry, test.MaySubmit = guests.Effects, "get", []string{"test", "gone"}
	test.Retry.MaxAttempts = 20
	other := test
	other.Name, other.MaySubmit, other.QueueCapacity = "other", nil, 2
	cfg.Workers = []host.Worker{test, other}
	for _, c := range change {
		c(&cfg)
	}
	h, _ := run(t, cfg)
	return h
}

// answer runs an entry and returns its result.
func answer(t *testing.T, h *hosttest.Host, entry, payload string) string {
	t.Helper()
	job := wait(t, h, submit(t, h, jobhost.Spec{Entry: entry, Payload: []byte(payload)}))
	if job.State != jobhost.Succeeded {
		t.Fatalf("%s %q is %v: %+v", entry, payload, job.State, job.Failures)
	}
	result, err := h.Result(t.Context(), job.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	return string(result.Data)
}

// TestKeysOfGuests: a guest's keys, as the guest and as people see them.
func TestKeysOfGuests(t *testing.T) {
	t.Parallel()
	h := effectHost(t)
	for _, tt := range []struct{ name, entry, payload, want string }{
		{"no key yet", "get", "a", "-1"},
		{"a key that isn't there has version 0", "version", "a", "0"},
		{"set", "set", "a=1", "0"},
		{"get", "get", "a", "1"},
		{"it has a version now", "version", "a", "1"},
		{"read your writes", "set_get", "b=mine", "mine"},
		{"add", "add", "a", "2"},
		{"add to nothing", "add", "n", "1"},
		{"add to text", "add", "b", strconv.FormatInt(-1<<63+5, 10)},
		{"cas", "cas", "b=next", "0"},
		{"cas of a new key", "cas", "c=new", "0"},
		{"delete", "del", "a", "0"},
		{"it is gone", "get", "a", "-1"},
		{"no key", "get", "", "-5"},
		{"a value over the limit", "get", "c", "new"},
	} {
		if got := answer(t, h, tt.entry, tt.payload); got != tt.want {
			t.Errorf("%s: %s %q answered %s, want %s", tt.name, tt.entry, tt.payload, got, tt.want)
		}
	}
	page, err := h.Keys(t.Context(), jobhost.KeyFilter{Worker: "test"})
	var names []string
	for _, k := range page.Keys {
		names = append(names, k.Name)
	}
	if err != nil || strings.Join(names, " ") != "b c n" {
		t.Errorf("the keys are %v, %v", names, err)
	}
	if err := h.SetKey(t.Context(), "test", "a", []byte("from outside"), 0); err != nil {
		t.Fatal(err)
	}
	if got := answer(t, h, "get", "a"); got != "from outside" {
		t.Errorf("got %q", got)
	}
}

// TestFailureDropsEffects: what an attempt asked for that failed comes to nothing.
func TestFailureDropsEffects(t *testing.T) {
	t.Parallel()
	h := effectHost(t)
	if job := wait(t, h, submit(t, h, jobhost.Spec{Entry: "set_fail", Payload: []byte("a=1")})); job.State != jobhost.Dead {
		t.Fatalf("the job is %v", job.State)
	}
	if got := answer(t, h, "get", "a"); got != "-1" {
		t.Errorf("the key is %q", got)
	}
	if page, err := h.Jobs(t.Context(), jobhost.Filter{}); err != nil || len(page.Jobs) != 2 {
		t.Errorf("there are %d jobs, %v; want 2", len(page.Jobs), err)
	}
	if stats, err := h.Workers(t.Context()); err != nil || stats[1].Tasks["ready"] != 0 {
		t.Errorf("workers %+v, %v", stats, err)
	}
}

// TestConflict: of attempts that read, think and write the same key, one at a
// time succeeds, the others fail with a conflict and come again.
func TestConflict(t *testing.T) {
	t.Parallel()
	h := effectHost(t, func(c *host.Config) { c.Workers[0].PoolSize = 4 })
	const jobs = 12
	var ids []string
	for range jobs {
		ids = append(ids, submit(t, h, jobhost.Spec{Entry: "append_x", Payload: []byte("log")}))
	}
	for _, id := range ids {
		job := wait(t, h, id)
		if job.State != jobhost.Succeeded {
			t.Fatalf("job %s is %v: %+v", id, job.State, job.Failures)
		}
		for _, f := range job.Failures {
			if f.Code != jobhost.FailConflict || !f.Retryable || !strings.Contains(f.Message, "log") {
				t.Errorf("a failure is %+v", f)
			}
		}
	}
	if got := answer(t, h, "get", "log"); got != strings.Repeat("x", jobs) {
		t.Errorf("after %d jobs the value is %q", jobs, got)
	}
}

// TestChildren: a job that an attempt submits has it as its parent.
func TestChildren(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{"submit", "submit_now"} {
		t.Run(entry, func(t *testing.T) {
			t.Parallel()
			h := effectHost(t)
			parent := submit(t, h, jobhost.Spec{Entry: entry, Payload: []byte("worker: test\nentry: add\nlabel.of: parent\n\nchildren")})
			wait(t, h, parent)
			result, err := h.Result(t.Context(), parent, 0)
			if err != nil {
				t.Fatal(err)
			}
			child := wait(t, h, string(result.Data))
			if child.State != jobhost.Succeeded || child.Parent != parent || child.Labels["of"] != "parent" {
				t.Errorf("the child is %+v", child)
			}
			page, err := h.Jobs(t.Context(), jobhost.Filter{Parent: parent})
			if err != nil || len(page.Jobs) != 1 || page.Jobs[0].ID != child.ID || page.Jobs[0].Parent != parent {
				t.Errorf("the children are %+v, %v", page.Jobs, err)
			}
			if got := answer(t, h, "get", "children"); got != "1" {
				t.Errorf("the child ran %s times", got)
			}
		})
	}
}

// TestChildNowIsSubmittedOnce: attempts that come again name their jobs alike.
func TestChildNowIsSubmittedOnce(t *testing.T) {
	t.Parallel()
	h := effectHost(t)
	spec := jobhost.Spec{Entry: "submit_now_fail", MaxAttempts: 4, Payload: []byte("worker: test\nentry: add\n\nchildren")}
	parent := wait(t, h, submit(t, h, spec))
	if parent.State != jobhost.Dead || len(parent.Failures) != 4 {
		t.Fatalf("the parent is %v after %d attempts", parent.State, len(parent.Failures))
	}
	page, err := h.Jobs(t.Context(), jobhost.Filter{Parent: parent.ID})
	if err != nil || len(page.Jobs) != 1 {
		t.Fatalf("the children are %+v, %v", page.Jobs, err)
	}
	wait(t, h, page.Jobs[0].ID)
	if got := answer(t, h, "get", "children"); got != "1" {
		t.Errorf("the child ran %s times", got)
	}
}

// TestSubmitRefused: the errnos of submit, and what the author finds in the log.
func TestSubmitRefused(t *testing.T) {
	t.Parallel()
	h := effectHost(t, func(c *host.Config) { c.Workers[0].MaySubmit = []string{"test", "gone", "other"} })
	later := func(id string) {
		if _, err := h.Submit(t.Context(), jobhost.Spec{Worker: "other", ID: id, Delay: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	later("first")
	later("second") // the queue is full now
	for _, tt := range []struct{ name, text, want, log string }{
		{"no grant", "worker: vowels", "-2", "may not submit jobs to vowels"},
		{"a worker that isn't loaded", "worker: gone", "-1", "there is no worker"},
		{"a full queue", "worker: other", "-4", "queue of other is full"},
		{"no option", "worker: test\nprio: high", "-5", "prio is not an option"},
	} {
		for _, entry := range []string{"submit", "submit_now"} {
			id := submit(t, h, jobhost.Spec{Entry: entry, Payload: []byte(tt.text)})
			wait(t, h, id)
			result, err := h.Result(t.Context(), id, 0)
			logs, logErr := h.Logs(t.Context(), id)
			if err != nil || logErr != nil || string(result.Data) != tt.want || !strings.Contains(fmt.Sprint(logs), tt.log) {
				t.Errorf("%s, %s: answered %q, %v; logged %v", tt.name, entry, result.Data, err, logs)
			}
		}
	}
	// An id that is taken is found out when the attempt has succeeded, or at once.
	for entry, want := range map[string]string{"submit": "dead", "submit_now": "succeeded"} {
		id := submit(t, h, jobhost.Spec{Entry: entry, MaxAttempts: 2, Payload: []byte("worker: test\nid: first")})
		job := wait(t, h, id)
		if job.State.String() != want || want == "dead" && job.Failures[0].Code != jobhost.FailConflict {
			t.Errorf("%s of a taken id is %v: %+v", entry, job.State, job.Failures)
		}
	}
}

// TestGenerations: children of children come to an end.
func TestGenerations(t *testing.T) {
	t.Parallel()
	h := effectHost(t)
	// Each generation submits the rest of its payload, which is one job shorter.
	payload := "worker: test\nentry: add\n\nreached"
	for range jobhost.MaxDepth - 1 {
		payload = "worker: test\nentry: submit\n\n" + payload
	}
	deepest := func(entry, payload string) jobhost.Job {
		job := wait(t, h, submit(t, h, jobhost.Spec{Entry: entry, Payload: []byte(payload)}))
		for {
			page, err := h.Jobs(t.Context(), jobhost.Filter{Parent: job.ID})
			if err != nil {
				t.Fatal(err)
			}
			if len(page.Jobs) == 0 {
				return job
			}
			job = wait(t, h, page.Jobs[0].ID)
		}
	}
	if last := deepest("submit", payload); last.Entry != "add" || answer(t, h, "get", "reached") != "1" {
		t.Errorf("the last generation is %+v", last)
	}
	last := deepest("submit", "worker: test\nentry: submit\n\n"+payload)
	if result, err := h.Result(t.Context(), last.ID, 0); err != nil || string(result.Data) != "-4" {
		t.Errorf("the last generation was answered %q, %v", result.Data, err)
	}
}

// TestQuotaOfGuests: a guest is told when the keys of its worker are too much.
func TestQuotaOfGuests(t *testing.T) {
	t.Parallel()
	h := effectHost(t, func(c *host.Config) { c.Workers[0].KVQuota = 100 })
	for _, tt := range []struct{ entry, payload, want string }{
		{"set", "a=" + strings.Repeat("x", 59), "0"},
		{"set", "b=", "-4"},
		{"set", "a=" + strings.Repeat("x", 60), "-4"},
		{"set", "a=" + strings.Repeat("y", 59), "0"},
		{"brief", "a=", "0"},
	} {
		if got := answer(t, h, tt.entry, tt.payload); got != tt.want {
			t.Errorf("%s %.10q answered %s, want %s", tt.entry, tt.payload, got, tt.want)
		}
	}
	for answer(t, h, "get", "a") != "-1" { // until the millisecond is over
		continue
	}
	if got := answer(t, h, "set", "b="+strings.Repeat("x", 59)); got != "0" {
		t.Errorf("in the place of a key that has expired: %s", got)
	}
}

// TestManyCounters: additions of attempts that run at once add up, over several workers' slots.
func TestManyCounters(t *testing.T) {
	t.Parallel()
	h := effectHost(t, func(c *host.Config) { c.Workers[0].PoolSize = 4 })
	const jobs = 200
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range jobs / 4 {
				receipt, err := h.Submit(t.Context(), jobhost.Spec{Worker: "test", Entry: "add", Payload: []byte("n")})
				if err == nil {
					_, err = h.Wait(t.Context(), receipt.ID)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if got := answer(t, h, "get", "n"); got != strconv.Itoa(jobs) {
		t.Errorf("after %d jobs the counter is %s", jobs, got)
	}
}
