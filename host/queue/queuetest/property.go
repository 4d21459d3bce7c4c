package queuetest

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// testProperty makes random changes to a store and a model, and asks both
// everything that can be asked.
//
// All checks use one store, since opening one may be slow; each begins with
// deleting what the last one left. For a failing check to be repeatable, what
// is drawn must not depend on the keys, which go on rising.
func testProperty(t *testing.T, h Harness) {
	s, next, checks, most := h.Open(t), record.Key(1), 0, math.MaxInt
	if raceEnabled || h.Slow && os.Getenv("JOBHOST_CHAOS") == "" {
		most = 15
	}
	rapid.Check(t, func(rt *rapid.T) {
		if checks++; checks > most {
			return // rapid's own number is for stores that are quick, without the race detector
		}
		m := newModel(next)
		clearStore(t, rt, s)
		clearKeys(t, rt, s, m)
		clearObjects(t, rt, s)
		clearStates(t, rt, s)
		defer func() { next = m.next }()
		for step := range rapid.IntRange(1, 6).Draw(rt, "steps") {
			change(rt, s, m, epoch+record.Millis(step), fmt.Sprint("ops ", step))
			if h.Reopen != nil && rapid.IntRange(0, 9).Draw(rt, "reopen") == 9 {
				s = h.Reopen(t, s)
			}
		}
		checkReads(t, rt, s, m)
		checkEffects(t, rt, s, m, epoch+6)
		checkObjects(t, rt, s, m)
		checkStates(t, rt, s, m)
	})
}

// change makes random changes to a store and a model.
func change(rt *rapid.T, s record.Store, m *model, now record.Millis, name string) {
	ops := rapid.SliceOfN(genOp(m, now), 1, 12).Draw(rt, name)
	got, err := commit(s, ops...)
	if err != nil {
		rt.Fatalf("commit: %v", err)
	}
	for i, op := range ops {
		want, err := m.apply(op, got[i])
		if err != nil {
			rt.Fatal(err)
		}
		checkResult(rt, op, got[i], want)
	}
}

// clearStore removes all jobs.
func clearStore(t *testing.T, rt *rapid.T, s record.Store) {
	jobs, err := s.Jobs(t.Context(), record.ListQuery{Limit: 1000})
	if err != nil {
		rt.Fatalf("list: %v", err)
	}
	var ops []record.Op
	for i := range jobs {
		ops = append(ops, &record.Cancel{ID: jobs[i].ID}, &record.Delete{ID: jobs[i].ID})
	}
	notes, err := s.Notes(t.Context())
	if err != nil {
		rt.Fatalf("notes: %v", err)
	}
	for name := range notes {
		ops = append(ops, &record.Note{Name: name})
	}
	if _, err := commit(s, ops...); err != nil {
		rt.Fatalf("clear: %v", err)
	}
}

// genOp draws an operation on few ids, so that many meet. Keys are changed at
// now, which rises.
func genOp(m *model, now record.Millis) *rapid.Generator[record.Op] {
	id := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"})
	at := rapid.Custom(func(t *rapid.T) record.Millis { return epoch + record.Millis(rapid.IntRange(0, 4).Draw(t, "at")) })
	expires := rapid.Custom(func(t *rapid.T) record.Millis {
		return rapid.SampledFrom([]record.Millis{0, epoch, epoch + 2, epoch + 4}).Draw(t, "until")
	})
	some := rapid.SampledFrom([][]int{nil, nil, {0}, {1}, {2, 0}, {5, 1, 5}, {-1}})
	submit := rapid.Custom(func(t *rapid.T) record.Op {
		return &record.Submit{Job: spec(id.Draw(t, "id"), rapid.SampledFrom([]string{"w", "x"}).Draw(t, "worker"),
			func(s *record.JobSpec) {
				s.Tasks = rapid.SampledFrom([]int{1, 1, 1, 2, 3, 70}).Draw(t, "tasks")
				s.Digest[0] = byte(rapid.IntRange(0, 1).Draw(t, "digest"))
				s.CreatedAt, s.ReadyAt = at.Draw(t, "created"), at.Draw(t, "ready")
				s.Priority = jobhost.PriorityAt(rapid.IntRange(0, 4).Draw(t, "level"))
				s.ConcurrencyKey = rapid.SampledFrom([]string{"", "", "k", "ü"}).Draw(t, "key")
				s.Deadline = rapid.SampledFrom([]record.Millis{0, 0, epoch + 9}).Draw(t, "deadline")
				if s.UniqueKey = rapid.SampledFrom([]string{"", "", "k", "l"}).Draw(t, "unique"); s.UniqueKey != "" {
					s.UniqueUntil = rapid.SampledFrom([]record.Millis{0, epoch + 1, epoch + 3}).Draw(t, "until")
				}
				s.Labels = rapid.SampledFrom([]map[string]string{nil, {"a": "1"}, {"a": "1", "b": ""}, {"a": "2"}}).Draw(t, "labels")
				s.Payload = rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "payload")
				s.Ref = genRef().Draw(t, "ref")
				s.Parent = genParent(t)
				genStepOptions(t, s)
			})}
	})
	settle := rapid.Custom(func(t *rapid.T) record.Op {
		op := &record.Settle{
			Key:       m.next + 2 - record.Key(rapid.IntRange(0, 80).Draw(t, "key")),
			Token:     int64(rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "token")),
			Status:    record.Status(rapid.IntRange(0, 3).Draw(t, "status")),
			ReadyAt:   at.Draw(t, "ready"),
			Number:    rapid.IntRange(1, 4).Draw(t, "number"),
			Attempt:   rapid.IntRange(0, 3).Draw(t, "attempt"),
			StartedAt: at.Draw(t, "started"), EndedAt: at.Draw(t, "ended"),
			Result:    rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "result"),
			Log:       rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "log"),
			Fuel:      rapid.Int64Range(0, 1<<40).Draw(t, "fuel"),
			Suspect:   rapid.Bool().Draw(t, "suspect"),
			ExpiresAt: expires.Draw(t, "expires"), MaxDead: rapid.IntRange(0, 6).Draw(t, "most dead"),
		}
		genResult(t, m, op)
		if rapid.Bool().Draw(t, "effects") {
			op.Effects = genEffects(m, now).Draw(t, "changes")
			op.EndedAt = now
		}
		if rapid.Bool().Draw(t, "callback") {
			op.Then = follower("settled")
		}
		if rapid.Bool().Draw(t, "failed") {
			op.Failure = &jobhost.Failure{Code: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "code"), Category: jobhost.CategoryBusiness, Message: "Too bad", Attempt: op.Attempt, StartedAt: time.UnixMilli(int64(op.StartedAt)).UTC()}
		}
		return op
	})
	return rapid.OneOf(submit, settle, settle, genChangeKV(m, now),
		rapid.Custom(func(t *rapid.T) record.Op {
			op := &record.Cancel{ID: id.Draw(t, "id"), At: at.Draw(t, "at"), ExpiresAt: expires.Draw(t, "expires"), Tasks: some.Draw(t, "tasks")}
			if rapid.Bool().Draw(t, "callback") {
				op.Then = follower("cancelled")
			}
			return op
		}),
		rapid.Custom(func(t *rapid.T) record.Op { return &record.Tidy{At: at.Draw(t, "at"), Limit: 1_000_000} }),
		rapid.Custom(func(t *rapid.T) record.Op {
			return &record.Revive{ID: id.Draw(t, "id"), At: at.Draw(t, "at"), Tasks: some.Draw(t, "tasks")}
		}),
		rapid.Custom(func(t *rapid.T) record.Op { return &record.Delete{ID: id.Draw(t, "id")} }),
		rapid.Custom(func(t *rapid.T) record.Op {
			return &record.Forget{Refs: rapid.SliceOfN(genRef(), 0, 3).Draw(t, "refs")}
		}),
		genStates(id),
		rapid.Custom(func(t *rapid.T) record.Op {
			return &record.Note{Name: id.Draw(t, "name"), Text: rapid.SampledFrom([]string{"", "x", "ü"}).Draw(t, "text")}
		}),
	)
}

// follower makes a job for each task that ends and a callback for each job, which
// are the same each time, and so are added once.
func follower(id string) func(record.End) []*record.JobSpec {
	return func(end record.End) []*record.JobSpec {
		jobs := []*record.JobSpec{spec(id+".task", "x")}
		if end.Job {
			jobs = append(jobs, spec(id, "x", func(s *record.JobSpec) {
				s.Payload, s.Labels = []byte{byte(end.Final[record.Dead])}, map[string]string{"a": "1"}
				s.Callback = jobhost.Callback{URL: "https://example.com/"}
			}))
		}
		return jobs
	}
}

// checkResult compares results; of refusals only the kind, for the rest is not promised.
func checkResult(t *rapid.T, op record.Op, got, want record.OpResult) {
	if want.Err != nil {
		if errors.Is(want.Err, record.ErrFenced) != errors.Is(got.Err, record.ErrFenced) ||
			jobhost.CodeOf(want.Err) != jobhost.CodeOf(got.Err) {
			t.Fatalf("%T: got error %v, want %v", op, got.Err, want.Err)
		}
		return
	}
	if _, ok := op.(*record.Delete); ok {
		got.Worker = want.Worker // not promised
	}
	if _, ok := op.(*record.Tidy); ok {
		got.Next = want.Next // a store may look sooner, or later
	}
	same(t, fmt.Sprintf("results of %T", op), got, want)
}

func same(t *rapid.T, what string, got, want any) {
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%s differ (-model +store):\n%s", what, diff)
	}
}

// checkReads asks the store and the model the same questions.
func checkReads(t *testing.T, rt *rapid.T, s record.Store, m *model) {
	ctx := t.Context()
	fail := func(what string, err error) {
		if err != nil {
			rt.Fatalf("%s: %v", what, err)
		}
	}
	var keys []record.Key
	for id, want := range m.jobs {
		got, err := s.Job(ctx, id)
		fail("job "+id, err)
		same(rt, "jobs", got, want.record())
		logs, err := s.Logs(ctx, want.spec.Key)
		fail("logs", err)
		same(rt, "logs", logs, want.logs)
		for i := range want.tasks {
			task := &want.tasks[i]
			keys = append(keys, task.Key)
			result, err := s.Result(ctx, task.Key)
			if (err == nil) != (task.Status == record.Succeeded) {
				rt.Fatalf("result of a task in status %d: %v", task.Status, err)
			}
			if err == nil {
				same(rt, "results", result, task.result)
			}
		}
	}
	for range 5 {
		q := genDeadQuery().Draw(rt, "dead query")
		letters, next, err := s.Dead(ctx, q)
		fail("dead letters", err)
		wantLetters, wantNext := m.letters(&q)
		same(rt, "dead letters", letters, wantLetters)
		if next != (record.DeadPlace{}) && wantNext == (record.DeadPlace{}) { // there may have been more, and were none
			q.Below = next
			wantLetters, _ = nil, next
			letters, next, err = s.Dead(ctx, q)
			fail("dead letters", err)
			same(rt, "dead letters after the last one", letters, wantLetters)
		}
		same(rt, "place to go on from", next, wantNext)
	}
	counts, err := s.Counts(ctx)
	fail("counts", err)
	same(rt, "counts", withoutZeros(counts), m.counts())
	notes, err := s.Notes(ctx)
	fail("notes", err)
	same(rt, "notes", notes, m.notes)
	bodies, err := s.Load(ctx, keys)
	fail("load", err)
	same(rt, "bodies", bodies, m.load(keys))
	for _, worker := range []string{"w", "x", "y"} {
		after := record.Place{ReadyAt: epoch + 2, Key: m.next - 40}
		for _, place := range []record.Place{{}, after} {
			claimed, err := s.Claim(ctx, worker, place, 7)
			fail("claim", err)
			same(rt, "claims", claimed, m.claim(worker, place, 7))
		}
	}
	for range 5 {
		q := genQuery(m).Draw(rt, "query")
		jobs, err := s.Jobs(ctx, q)
		fail("list", err)
		same(rt, "jobs of a list", jobs, m.list(&q))
	}
}

// load is what the store should load.
func (m *model) load(keys []record.Key) []record.Body {
	var out []record.Body
	for _, key := range keys {
		job, task := m.task(key)
		if task != nil && task.Status == record.Open {
			spec := job.spec
			spec.Parent = nil // not promised
			body := record.Body{Key: key, Token: task.Token, Attempt: task.Attempt, Suspect: task.suspect, Index: task.Index, Deadline: task.deadline, Job: &spec}
			if spec.Items != nil {
				body.Payload = append([]byte{}, spec.Items[task.Index]...)
				spec.Items = nil
			}
			out = append(out, body)
		}
	}
	return out
}

func genQuery(m *model) *rapid.Generator[record.ListQuery] {
	return rapid.Custom(func(t *rapid.T) record.ListQuery {
		q := record.ListQuery{
			Worker: rapid.SampledFrom([]string{"", "", "w", "x", "y"}).Draw(t, "worker"),
			Limit:  rapid.IntRange(0, 8).Draw(t, "limit"),
			Labels: rapid.SampledFrom([]map[string]string{nil, nil, {"a": "1"}, {"a": "1", "b": ""}, {"c": "1"}}).Draw(t, "labels"),
		}
		if n := rapid.IntRange(-1, 200).Draw(t, "below"); n >= 0 {
			q.Below = max(m.next+1-record.Key(n), 1)
		}
		if n := rapid.IntRange(-4, 3).Draw(t, "status"); n >= 0 {
			status := record.Status(n)
			q.Status = &status
		}
		if rapid.IntRange(0, 3).Draw(t, "by parent") == 0 {
			q.Parent = "a"
		}
		if rapid.Bool().Draw(t, "by time") {
			q.After = epoch + record.Millis(rapid.IntRange(-1, 4).Draw(t, "after"))
			q.Before = epoch + record.Millis(rapid.IntRange(-1, 5).Draw(t, "before"))
		}
		if rapid.IntRange(0, 3).Draw(t, "by keys") == 0 {
			q.Keys = []record.Key{}
			for _, job := range m.jobs {
				if job.spec.Key%2 == 0 {
					q.Keys = append(q.Keys, job.spec.Key, job.spec.Key+1)
				}
			}
			slices.Sort(q.Keys)
			q.Keys = slices.Compact(q.Keys)
			slices.Reverse(q.Keys)
		}
		return q
	})
}
