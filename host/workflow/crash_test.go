package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/internal/testing/crashvfs"
)

// everything is a workflow of 30 steps in which there is one of each thing that a step can be.
func everything() jobhost.Workflow {
	job := func(name string, needs ...string) jobhost.Step {
		return jobhost.Step{Name: name, Worker: "w", Needs: needs}
	}
	with := func(s jobhost.Step, change func(*jobhost.Step)) jobhost.Step {
		change(&s)
		return s
	}
	w := jobhost.Workflow{Name: "everything", Timeout: jobhost.Duration(time.Hour), Steps: []jobhost.Step{
		job("a"),
		with(job("list", "a"), func(s *jobhost.Step) { s.Entry = "list" }),
		with(job("fan", "list"), func(s *jobhost.Step) { s.FanOut, s.MaxParallel = "steps.list.output", 2 }),
		with(job("three", "a"), func(s *jobhost.Step) { s.Tasks = 3 }),
		with(job("flaky", "a"), func(s *jobhost.Step) { s.Entry, s.Deadline = "flaky", jobhost.Duration(time.Hour) }),
		with(job("bad", "a"), func(s *jobhost.Step) { s.Entry, s.Fallback = "fail", "instead" }),
		{Name: "instead", Worker: "w"},
		with(job("badly", "a"), func(s *jobhost.Step) { s.Entry, s.Fallback = "fail", "other" }),
		with(job("never", "list"), func(s *jobhost.Step) { s.When = "size(steps.list.output) > 5" }),
		job("nor", "never"),
		with(job("anyway", "never", "a"), func(s *jobhost.Step) { s.WhenSkipped = jobhost.RunAnyway }),
		with(job("vain", "a"), func(s *jobhost.Step) { s.Entry, s.OnError = "fail", jobhost.ContinueWorkflow }),
		job("on", "vain"),
		{Name: "sub", Workflow: "outer", Needs: []string{"a"}},
		{Name: "subvain", Workflow: "vain", Needs: []string{"a"}, OnError: jobhost.ContinueWorkflow},
		{Name: "nap", Sleep: jobhost.Duration(time.Millisecond), Needs: []string{"a"}},
		job("up", "nap"),
		{Name: "ask", Signal: "go"},
		job("told", "ask"),
	}}
	for i := range 9 {
		needs := []string{"a"}
		if i >= 2 {
			needs = []string{fmt.Sprint("m", i-1), fmt.Sprint("m", i-2)}
		}
		w.Steps = append(w.Steps, job(fmt.Sprint("m", i), needs...))
	}
	return appendSteps(w, job("both", "fan", "m8"),
		with(job("all", "both", "three", "flaky", "bad", "badly", "anyway", "on", "sub", "subvain", "up", "told"), func(s *jobhost.Step) { s.Output = true }))
}

func appendSteps(w jobhost.Workflow, steps ...jobhost.Step) jobhost.Workflow {
	w.Steps = append(w.Steps, steps...)
	return w
}

// children are the workflows that everything has as steps.
func children() []jobhost.Workflow {
	return []jobhost.Workflow{
		{Name: "outer", Steps: []jobhost.Step{
			{Name: "x", Worker: "w"}, {Name: "deeper", Workflow: "inner", Needs: []string{"x"}}, {Name: "y", Worker: "w", Needs: []string{"deeper"}},
		}},
		{Name: "inner", Steps: []jobhost.Step{
			{Name: "nap", Sleep: jobhost.Duration(time.Millisecond)}, {Name: "z", Worker: "other", Needs: []string{"nap"}, Input: "input"},
		}},
		{Name: "vain", Steps: []jobhost.Step{{Name: "x", Worker: "w", Entry: "fail"}, {Name: "y", Worker: "w", Needs: []string{"x"}}}},
	}
}

// lives is a workflow that goes on over losses of power.
type lives struct {
	t    *testing.T
	disk *crashvfs.Disk
	dir  string
	def  jobhost.Workflow

	mu    sync.Mutex     // protects ends
	ends  map[string]int // of workflows, as reported in all lives
	needs map[string][]string
}

const crashID = "wf-crash"

func newLives(t *testing.T, disk *crashvfs.Disk, dir string) *lives {
	l := &lives{t: t, disk: disk, dir: dir, def: everything(), ends: map[string]int{}, needs: map[string][]string{}}
	for _, s := range l.def.Steps {
		l.needs[s.Name] = s.Needs
	}
	return l
}

func openDisk(disk *crashvfs.Disk, dir string) (*sqlitedb.DB, *sqlitequeue.Store, error) {
	db, err := sqlitedb.Open(sqlitedb.Options{Dir: dir, Disk: disk, Readers: 1, CheckpointPages: 60, Schemas: sqlitequeue.Schemas()})
	if err != nil {
		return nil, nil, err
	}
	store, err := sqlitequeue.New(db)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return db, store, nil
}

// live lets the workflow go on until it has ended or the power is lost. then looks at how it ended.
func (l *lives) live(then func(*site, *jobhost.WorkflowRun)) error {
	db, store, err := openDisk(l.disk, l.dir)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // after a loss of power it has nothing to say
	s, err := newSite(l.t, opened{store: store}, plant{workers: []string{"w", "other"}, slots: 2, defs: children(), work: l.work, more: l.told})
	if err != nil {
		return err
	}
	defer s.close()
	run, err := l.course(s)
	if err == nil && then != nil {
		then(s, &run)
	}
	return err
}

// course does what the outside world does, which goes on until it is acknowledged.
func (l *lives) course(s *site) (jobhost.WorkflowRun, error) {
	ctx := l.t.Context()
	start := jobhost.WorkflowStart{ID: crashID, Definition: &l.def, Input: []byte(`{"n":1}`)}
	if _, err := s.e.StartWorkflow(ctx, start); err != nil {
		return jobhost.WorkflowRun{}, err
	}
	err := s.e.SignalWorkflow(ctx, crashID, jobhost.WorkflowSignal{Name: "go", ID: "once", Payload: []byte(`"gone"`)})
	if err != nil && jobhost.CodeOf(err) != jobhost.CodeConflict { // it has ended
		return jobhost.WorkflowRun{}, err
	}
	return s.await(crashID)
}

func (l *lives) told(e jobhost.Event) {
	if e.Kind == jobhost.EventWorkflowEnded {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ends[e.Workflow]++
	}
}

// work is a worker. It looks whether all that its step needs has ended durably.
func (l *lives) work(s *site, lease *queue.Lease) (jobhost.Outcome, bool) {
	origin := lease.Job.Origin
	if run, err := s.e.Workflow(context.Background(), origin.ID); err == nil && origin.ID == crashID {
		for i := range run.Steps {
			for _, need := range l.needs[origin.Step] {
				if run.Steps[i].Name == need && !run.Steps[i].Status.Ended() {
					l.t.Errorf("step %s has begun while %s is %s", origin.Step, need, run.Steps[i].Status)
				}
			}
		}
	}
	switch entry := lease.Job.Entry; {
	case entry == "fail":
		return fail(false)
	case entry == "flaky" && lease.Attempt == 0:
		return fail(true)
	case entry == "list":
		return succeed("[10,20,30]")
	}
	return succeed(digest(lease))
}

// trail is what a workflow has left behind.
type trail struct {
	output, statuses string
	kv               map[string]string
}

func (l *lives) trail(s *site, run *jobhost.WorkflowRun) trail {
	l.t.Helper()
	left := trail{output: string(run.Output), statuses: statuses(run), kv: map[string]string{}}
	for _, worker := range []string{"w", "other"} {
		keys, err := s.store.KVList(l.t.Context(), record.KVQuery{Worker: worker, Limit: 1000})
		if err != nil {
			l.t.Fatal(err)
		}
		for _, k := range keys {
			entry, err := s.store.KV(l.t.Context(), worker, k.Key, 0)
			if err != nil {
				l.t.Fatal(err)
			}
			left.kv[k.Key] = string(entry.Value)
		}
	}
	return left
}

// undisturbed is what the workflow leaves behind when nothing goes wrong.
func undisturbed(t *testing.T) (left trail, writes, syncs int) {
	t.Helper()
	l := newLives(t, crashvfs.New(t), t.TempDir())
	if err := l.live(func(s *site, run *jobhost.WorkflowRun) { left = l.trail(s, run) }); err != nil {
		t.Fatal(err)
	}
	if len(left.kv) != 2*29 {
		t.Fatalf("%d tasks have left something behind: %v", len(left.kv)/2, left.kv)
	}
	for key, value := range left.kv {
		if key[len(key)-1] == '#' && value != "1" {
			t.Fatalf("task %s has had its effect %s times", key, value)
		}
	}
	writes, syncs = l.disk.Counts()
	return left, writes, syncs
}

// check lets the workflow come to its end, which must be as if nothing had happened.
func (l *lives) check(want trail) {
	l.t.Helper()
	var got trail
	if err := l.live(func(s *site, run *jobhost.WorkflowRun) { got = l.trail(s, run) }); err != nil {
		l.t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		l.t.Errorf("it left behind\n%v\nnot\n%v", got, want)
	}
	for id, n := range l.ends {
		if n > 1 {
			l.t.Errorf("workflow %s has ended %d times", id, n)
		}
	}
}

// crash cuts the power.
func (l *lives) crash(rng *rand.Rand) {
	l.disk.PowerOff()
	l.disk = l.disk.Crash(rng)
}

// TestPowerLossAtEachSync loses power at each sync of the life of a workflow, and at writes,
// from the creation of the database to its end: at all of them in the chaos run, and at a
// spread otherwise.
func TestPowerLossAtEachSync(t *testing.T) {
	t.Parallel()
	want, writes, syncs := undisturbed(t)
	for _, kind := range []struct {
		name         string
		stride, most int
		fault        func(n int) crashvfs.Faults
	}{
		{"sync", strideOf(syncs, 4, syncs), syncs, func(n int) crashvfs.Faults { return crashvfs.Faults{PowerOffAtSync: n} }},
		{"write", strideOf(writes, 2, 250), writes, func(n int) crashvfs.Faults { return crashvfs.Faults{FailWrite: n} }},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			met := 0
			for n := kind.stride; n <= kind.most; n += kind.stride {
				l := newLives(t, crashvfs.New(t), t.TempDir())
				l.disk.Set(kind.fault(n))
				if l.live(nil) != nil {
					met++
				}
				l.crash(rand.New(rand.NewPCG(uint64(n), 1)))
				l.check(want)
				l.disk.Discard()
			}
			t.Logf("%d losses of power on the way", met)
		})
	}
}

// strideOf makes of so many points some, or with JOBHOST_CHAOS=1 many.
func strideOf(points, some, many int) int {
	if chaos() {
		some = many
	}
	return max(points/some, 1)
}

// TestPowerLossAgainAndAgain loses power in each life of a workflow, until it has come to its
// end all the same.
func TestPowerLossAgainAndAgain(t *testing.T) {
	t.Parallel()
	want, _, _ := undisturbed(t)
	rounds := 1
	if chaos() {
		rounds = 30
	}
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(3, uint64(seed)))
		l := newLives(t, crashvfs.New(t), t.TempDir())
		lost := 0
		for ; lost < 4; lost++ {
			l.disk.Set(crashvfs.Faults{PowerOffAtSync: 3 + rng.IntN(12)})
			if l.live(nil) == nil {
				break
			}
			l.crash(rng)
		}
		l.disk.Set(crashvfs.Faults{})
		l.check(want)
		l.disk.Discard()
		t.Logf("seed %d: %d losses of power", seed, lost)
	}
}
