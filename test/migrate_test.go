package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

const movedManifest = belowManifest + `
[worker.cat]
plugin = "cat.wasm"

[worker.flaky]
plugin = "outcomes.wasm"
entry = "fail_retry"
[worker.flaky.retry]
initial = "1h"
max = "1h"

[worker.late]
plugin = "outcomes.wasm"
entry = "echo"

[[schedule]]
name = "yearly"
cron = "0 0 1 1 *"
worker = "echo"

[[schedule]]
name = "rested"
every = "1h"
worker = "echo"
`

// newMovedSite returns a site whose host is to be moved.
func newMovedSite(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.write("effects.wasm", guests.Effects)
	s.write("cat.wasm", guests.Cat)
	s.write("manifest.toml", []byte(s.manifest()+movedManifest))
	return s
}

// TestMove: a host is killed in the middle of its work, and its folder is moved into a PostgreSQL. The host there
// answers all reads as the one before did, and its jobs come to the same ends as those of a copy of the folder.
func TestMove(t *testing.T) {
	t.Parallel()
	if _, err := postgres.Program("postgres"); err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	from := newMovedSite(t)
	host := from.start()
	beginWork(t, host)
	before := seen(t, host)
	if _, err := host.StartWorkflow(t.Context(), jobhost.WorkflowStart{ID: "wf-late", Definition: &jobhost.Workflow{Name: "late", Steps: []jobhost.Step{
		{Name: "nap", Sleep: jobhost.Duration(time.Second)}, {Name: "up", Worker: "late", Needs: []string{"nap"}, Input: "1 + 1"},
	}}}); err != nil {
		t.Fatal(err)
	}
	host.kill()

	copied := newMovedSite(t)
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", filepath.Join(from.dir, "data"), copied.dir).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	to := newMovedSite(t)
	server := postgres.Start(t, "fsync=on", "full_page_writes=on")
	to.replace("[host]", fmt.Sprintf("[payload]\n[[payload.store]]\nname = \"local\"\nkind = \"database\"\n\n[host]\nstore = %q", server.URL()))
	to.command("migrate", "--check", "--from", "sqlite:"+filepath.Join(from.dir, "data"))
	to.command("migrate", "--from", "sqlite:"+filepath.Join(from.dir, "data"))
	host = to.start()
	if from.token() != to.token() {
		t.Error("the token is another one")
	}
	after := seen(t, host)
	delete(after, "workflow wf-late")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("what there is to read differs (-before +after):\n%s", diff)
	}
	got := endWork(t, host)
	if want := endWork(t, copied.start()); !maps.Equal(got, want) {
		t.Errorf("the ends differ (-SQLite +PostgreSQL):\n%s", cmp.Diff(want, got))
	}
	if n := server.Query(t, "SELECT count(*) FROM jobhost.payload_object")[0][0]; n == "0" {
		t.Error("no payload is in the database")
	}
}

// TestMoveKilled: a move that is killed in its middle has left nothing, and the next one succeeds without any cleaning up.
func TestMoveKilled(t *testing.T) {
	t.Parallel()
	if _, err := postgres.Program("postgres"); err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	s := newMovedSite(t)
	host := s.start()
	for i := range 100 {
		host.submit(jobhost.Spec{ID: fmt.Sprint("job", i), Worker: "echo", Delay: time.Hour})
	}
	if code := host.stop(); code != 0 {
		t.Fatal(host.logText())
	}
	server := postgres.Start(t, "fsync=on")
	s.replace("[host]", fmt.Sprintf("[host]\nstore = %q", server.URL()))
	s.command("migrate")
	lock, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), "BEGIN; LOCK TABLE jobhost.state"); err != nil { // which comes last
		t.Fatal(err)
	}
	program, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "migrate", "--from", "sqlite:data", "-f", "manifest.toml")
	cmd.Dir = s.dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for len(server.Query(t, "SELECT FROM pg_stat_activity WHERE wait_event_type='Lock'")) == 0 {
		<-tick.C
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	if n := server.Query(t, "SELECT count(*) FROM jobhost.job")[0][0]; n != "0" {
		t.Errorf("%s jobs", n)
	}
	if err := lock.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.command("migrate", "--from", "sqlite:data")
	if n := server.Query(t, "SELECT count(*) FROM jobhost.job")[0][0]; n != "100" {
		t.Errorf("%s jobs", n)
	}
}

// beginWork gives a host work of all kinds, and returns in the middle of it. Its workers are paused then, so that what
// there is to read does not change.
func beginWork(t *testing.T, p *process) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	large := bytes.Repeat([]byte("large payload "), 20_000)
	for _, spec := range []jobhost.Spec{
		{ID: "done", Worker: "echo", Payload: []byte("result"), Labels: map[string]string{"a": "1"}, ContentType: "text/plain"},
		{ID: "parts", Worker: "echo", Payload: []byte("x"), Tasks: 3, Priority: jobhost.High},
		{ID: "dead", Worker: "echo", Entry: "fail_permanent", Payload: []byte("die")},
		{ID: "large", Worker: "cat", Payload: large},
		{ID: "sum", Worker: "count", Payload: []byte("counter")},
	} {
		_, err := p.SubmitWait(ctx, spec)
		must(err)
	}
	must(p.SetKey(ctx, "echo", "kept", []byte("value"), 0))
	must(p.SetKey(ctx, "echo", "passing", []byte{0, 255}, time.Hour))
	for i, status := range []int32{jobhost.StatusStarted, jobhost.StatusFinished} {
		_, err := p.SetState(ctx, "", jobhost.TaskState{JobID: "import", TaskID: i, Tag: "ingest", Status: status, Message: "rows", Payload: json.RawMessage(`{"n": 1}`)}, 2)
		must(err)
	}
	_, err := p.SetState(ctx, "run2", jobhost.TaskState{JobID: "done", Tag: "ingest", Status: jobhost.StatusStarted}, 1)
	must(err)
	_, err = p.PauseSchedule(ctx, "rested")
	must(err)
	_, err = p.StartWorkflow(ctx, jobhost.WorkflowStart{ID: "wf-mid", Definition: counted(), Labels: map[string]string{"b": "2"}})
	must(err)
	_, err = p.StartWorkflow(ctx, jobhost.WorkflowStart{ID: "wf-below", Workflow: "below"})
	must(err)
	_, err = p.WaitWorkflow(ctx, "wf-below")
	must(err)
	_, err = p.StartWorkflow(ctx, jobhost.WorkflowStart{ID: "wf-nap", Definition: &jobhost.Workflow{Name: "nap", Steps: []jobhost.Step{{Name: "nap", Sleep: jobhost.Duration(time.Hour)}}}})
	must(err)
	p.submit(jobhost.Spec{ID: "retrying", Worker: "flaky", Payload: []byte("x")})
	awaitState(t, p, "retrying", jobhost.Retrying)
	awaitSteps(t, p)

	p.submit(jobhost.Spec{ID: "runs", Worker: "spin", Timeout: time.Hour})
	awaitState(t, p, "runs", jobhost.Running)
	for _, worker := range []string{"echo", "spin", "count", "cat", "flaky"} {
		_, err := p.PauseWorker(ctx, worker)
		must(err)
	}
	for i, spec := range []jobhost.Spec{
		{Worker: "echo", Payload: []byte("w0"), Priority: jobhost.Low},
		{Worker: "echo", Payload: []byte("w1"), Priority: jobhost.Critical, ConcurrencyKey: "k"},
		{Worker: "echo", Payload: []byte("w2"), UniqueKey: "only", UniqueFor: time.Hour},
		{Worker: "echo", Payload: []byte("w3"), Callback: jobhost.Callback{Worker: "count"}},
		{Worker: "cat", Payload: large},
		{Worker: "count", Payload: []byte("counter"), Tasks: 5},
	} {
		spec.ID = fmt.Sprint("waits", i)
		p.submit(spec)
	}
	p.submit(jobhost.Spec{ID: "later", Worker: "echo", Delay: time.Hour, Deadline: 2 * time.Hour})
	p.submit(jobhost.Spec{ID: "never", Worker: "echo"})
	_, err = p.Cancel(ctx, "never")
	must(err)
}

// awaitSteps waits until the workflow in the middle of its course waits for its signal alone.
func awaitSteps(t *testing.T, p *process) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		run, err := p.Workflow(t.Context(), "wf-mid")
		if err != nil {
			t.Fatal(err)
		}
		open := slices.DeleteFunc(run.Steps, func(s jobhost.StepRun) bool { return s.EndedAt != nil || s.Name == "told" || s.Name == "all" })
		if len(open) == 1 && open[0].Name == "ask" {
			return
		}
	}
}

// seen returns everything that people can read of a host, but for what runs, which runs anew after a kill, and for what wakes
// workflows, which is gone a second later.
func seen(t *testing.T, p *process) map[string]string {
	t.Helper()
	ctx, all := t.Context(), map[string]string{}
	note := func(name string, v any, err error) {
		t.Helper()
		text, encodeErr := json.MarshalIndent(v, "", " ")
		if encodeErr != nil {
			t.Fatal(encodeErr)
		}
		all[name] = string(text)
		if err != nil {
			all[name] += " " + err.Error()
		}
	}
	for cursor := ""; ; {
		page, err := p.Jobs(ctx, jobhost.Filter{Cursor: cursor, Limit: 7})
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Jobs {
			if id := page.Jobs[i].ID; id != "runs" && !strings.HasPrefix(id, "wf-late") && !strings.HasSuffix(id, ".wake") {
				note("listed "+id, page.Jobs[i], nil)
				seenJob(t, p, id, note)
			}
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	for name, filter := range map[string]jobhost.Filter{"labelled": {Labels: map[string]string{"a": "1"}}, "dead": {State: jobhost.Dead}, "of count": {Worker: "count"}} {
		page, err := p.Jobs(ctx, filter)
		note("jobs "+name, page.Jobs, err)
	}
	dead, err := p.Dead(ctx, jobhost.DeadFilter{Retried: true})
	note("dead letters", dead, err)
	summary, err := p.DeadSummary(ctx, jobhost.DeadQuery{})
	note("deaths", summary, err)
	schedules, err := p.Schedules(ctx)
	note("schedules", schedules, err)
	definitions, err := p.Definitions(ctx)
	note("definitions", definitions, err)
	for _, worker := range []string{"echo", "count"} {
		keys, err := p.Keys(ctx, jobhost.KeyFilter{Worker: worker})
		note("keys of "+worker, keys, err)
		for _, key := range keys.Keys {
			_, value, err := p.KeyValue(ctx, worker, key.Name)
			note("key "+key.Name, value, err)
		}
	}
	states, err := p.StateJobs(ctx, jobhost.StateJobFilter{})
	note("states", states, err)
	for _, q := range []jobhost.StateQuery{{Job: "import"}, {Job: "done", Run: "run2"}} {
		report, err := p.States(ctx, q)
		note("states of "+q.Job, report, err)
	}
	workers, err := p.Workers(ctx)
	for i := range workers {
		if w := &workers[i]; w.Name != "spin" && w.Name != "late" {
			note("worker "+w.Name, map[string]any{"mode": w.Mode, "tasks": w.Tasks}, err)
		}
	}
	seenWorkflows(t, p, note)
	return all
}

func seenJob(t *testing.T, p *process, id string, note func(string, any, error)) {
	t.Helper()
	ctx := t.Context()
	job, err := p.Job(ctx, id)
	note("job "+id, job, err)
	for task := range job.Tasks {
		result, err := p.Result(ctx, id, task)
		note(fmt.Sprint("result ", id, " ", task), result, err)
	}
	logs, err := p.Logs(ctx, id)
	note("logs "+id, logs, err)
	why, err := p.Why(ctx, id)
	note("why "+id, why, err)
}

func seenWorkflows(t *testing.T, p *process, note func(string, any, error)) {
	t.Helper()
	ctx := t.Context()
	list, err := p.Workflows(ctx, jobhost.WorkflowFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Workflows {
		id := list.Workflows[i].ID
		if id == "wf-late" {
			continue
		}
		run, err := p.Workflow(ctx, id)
		note("workflow "+id, run, err)
		definition, err := p.DefinitionOf(ctx, id)
		note("definition of "+id, definition, err)
		output, err := p.OpenWorkflowOutput(ctx, id)
		if err != nil {
			note("output of "+id, nil, err)
			continue
		}
		data, err := io.ReadAll(output)
		_ = output.Close() // nothing was written
		note("output of "+id, string(data), err)
	}
}

// endWork lets a host go on, and returns what becomes of everything.
func endWork(t *testing.T, p *process) map[string]string {
	t.Helper()
	ctx, ends := t.Context(), map[string]string{}
	for _, worker := range []string{"echo", "spin", "count", "cat", "flaky"} {
		if _, err := p.ResumeWorker(ctx, worker); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.SignalWorkflow(ctx, "wf-mid", jobhost.WorkflowSignal{Name: "go", ID: "once", Payload: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Cancel(ctx, "runs"); err != nil {
		t.Fatal(err)
	}
	again, err := p.Submit(ctx, jobhost.Spec{ID: "another", Worker: "echo", Payload: []byte("w2"), UniqueKey: "only", UniqueFor: time.Hour})
	if err != nil || !again.Deduplicated || again.ID != "waits2" {
		t.Errorf("the unique key is not taken: %+v, %v", again, err)
	}
	again, err = p.Submit(ctx, jobhost.Spec{ID: "done", Worker: "echo", Payload: []byte("result"), Labels: map[string]string{"a": "1"}, ContentType: "text/plain"})
	if err != nil || !again.Deduplicated {
		t.Errorf("submitted again: %+v, %v", again, err)
	}
	for _, id := range []string{"wf-mid", "wf-late"} {
		run, err := p.WaitWorkflow(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		ends[id] = string(run.Status) + " " + string(run.Output)
		for i := range run.Steps {
			s := &run.Steps[i]
			ends[id+"/"+s.Name] = string(s.Status) + " " + string(s.Output)
		}
	}
	for _, id := range []string{"runs", "waits0", "waits1", "waits2", "waits3", "waits4", "waits5"} {
		job, err := p.Wait(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		ends[id] = job.State.String()
		if id == "waits5" { // its tasks count at one time, and return what they have seen of it
			continue
		}
		for task := range job.Tasks {
			if result, err := p.Result(ctx, id, task); err == nil {
				ends[id] += " " + string(result.Data)
			}
		}
	}
	if _, value, err := p.KeyValue(ctx, "count", "counter"); err != nil || string(value) != "6" {
		t.Errorf("the counter is %q, %v", value, err)
	}
	return ends
}
