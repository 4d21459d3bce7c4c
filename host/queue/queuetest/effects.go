package queuetest

import (
	"fmt"
	"math"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
)

// effective returns a settlement that succeeds with effects.
func effective(key queue.Key, e *queue.Effects) *queue.Settle {
	op := settlement(key, queue.Succeeded)
	op.Effects = e
	return op
}

func set(key, value string) queue.KVChange { return queue.KVChange{Key: key, Value: []byte(value)} }

func add(key string, delta int64) queue.KVChange {
	return queue.KVChange{Key: key, Kind: queue.KVAdd, Delta: delta}
}

// change changes keys of worker w, which must not be refused.
func (s store) change(at queue.Millis, changes ...queue.KVChange) {
	s.t.Helper()
	s.must(&queue.ChangeKV{Worker: "w", At: at, Changes: changes})
}

// refused makes a change of keys that must be refused.
func (s store) refused(op queue.Op, code jobhost.Code) {
	s.t.Helper()
	wantCode(s.t, s.do(op)[0].Err, code)
}

// wantKey checks the value of a key of worker w; "-" = it isn't there.
func (s store) wantKey(key, want string) queue.KVEntry {
	s.t.Helper()
	e, err := s.KV(s.t.Context(), "w", key, epoch)
	if want == "-" {
		wantCode(s.t, err, jobhost.CodeNotFound)
		return e
	}
	if err != nil || string(e.Value) != want || e.Size != len(want) || e.Key != key {
		s.t.Fatalf("key %s is %+v, %v; want %q", key, e, err, want)
	}
	return e
}

// childOf makes a job the child of another one.
func childOf(parent *queue.JobRecord, task int) func(*queue.JobSpec) {
	depth := 1
	if parent.Parent != nil {
		depth += parent.Parent.Depth
	}
	p := &queue.Parent{ID: parent.ID, Key: parent.Key, Task: task, Depth: depth}
	return func(s *queue.JobSpec) { s.Parent = p }
}

// testEffects: effects come with success, and with nothing else.
func testEffects(t *testing.T, h Harness) {
	s := open(t, h)
	key := s.submit(spec("parent", "w", tasks(2)))
	parent := s.job("parent")
	labelled := func(s *queue.JobSpec) { s.Labels = map[string]string{"a": "b"} }
	effects := func() *queue.Effects {
		return &queue.Effects{
			KV:   []queue.KVChange{set("name", "value"), add("count", 2)},
			Jobs: []*queue.JobSpec{spec("child", "x", tasks(3), childOf(&parent, 0), labelled), spec("other", "new", childOf(&parent, 0))},
		}
	}
	retry := settlement(key, queue.Open)
	retry.Effects = effects()
	s.must(retry)
	dead := settlement(key+1, queue.Dead)
	dead.Effects = effects()
	s.must(dead)
	s.wantKey("name", "-")
	fenced := effective(key, effects())
	wantFenced(t, s.do(fenced)[0])
	s.wantKey("count", "-")

	op := effective(key, effects())
	op.Token = 1
	res := s.must(op)
	if len(res.Jobs) != 2 || res.Jobs[0].Existing || res.Jobs[1].Key < res.Jobs[0].Key+3 || !res.JobEnded {
		t.Fatalf("the settlement returned %+v", res)
	}
	wantFenced(t, s.do(op)[0])
	s.wantKey("name", "value")
	s.wantKey("count", "2")
	child := s.job("child")
	wantSame(t, "parents", child.Parent, &queue.Parent{ID: "parent", Key: key, Depth: 1})
	wantSame(t, "labels", child.Labels, map[string]string{"a": "b"})
	if got := s.claim("x", queue.Place{}, 10); len(got) != 3 || got[0].Key != res.Jobs[0].Key {
		t.Fatalf("claimed %+v", got)
	}
	wantSame(t, "children", ids(s.list(queue.ListQuery{Parent: "parent"})), []string{"other", "child"})
	wantSame(t, "children of one worker", ids(s.list(queue.ListQuery{Parent: "parent", Worker: "x"})), []string{"child"})
	wantSame(t, "nobody's children", ids(s.list(queue.ListQuery{Parent: "child"})), []string(nil))
	s.checkCounts()
	if h.Reopen != nil {
		s.Store = h.Reopen(t, s.Store)
		s.wantKey("name", "value")
		wantSame(t, "parents", s.job("child").Parent, child.Parent)
	}
}

// testEffectsRefused: a settlement whose effects can't be applied changes
// nothing, keeps the lease and leaves its batch alone.
func testEffectsRefused(t *testing.T, h Harness) {
	s := open(t, h)
	s.change(epoch, set("text", "no number"), set("max", fmt.Sprint(math.MaxInt64)), set("seen", "1"))
	version := s.wantKey("seen", "1").Version
	s.change(epoch, set("seen", "2"))
	taken := func(s *queue.JobSpec) { s.Digest[0] = 9 }
	s.submit(spec("taken", "w"))
	for i, tt := range []struct {
		name    string
		effects queue.Effects
		code    jobhost.Code
	}{
		{"changed meanwhile", queue.Effects{KV: []queue.KVChange{set("x", ""), {Key: "seen", Checked: true, Version: version}}}, jobhost.CodeConflict},
		{"made meanwhile", queue.Effects{KV: []queue.KVChange{set("x", ""), {Key: "seen", Checked: true}}}, jobhost.CodeConflict},
		{"gone meanwhile", queue.Effects{KV: []queue.KVChange{set("x", ""), {Key: "none", Checked: true, Version: 1}}}, jobhost.CodeConflict},
		{"no number", queue.Effects{KV: []queue.KVChange{set("x", ""), add("text", 1)}}, jobhost.CodeConflict},
		{"too large a number", queue.Effects{KV: []queue.KVChange{set("x", ""), add("max", 1)}}, jobhost.CodeConflict},
		{"quota", queue.Effects{KV: []queue.KVChange{set("x", "")}, Quota: 10}, jobhost.CodeExhausted},
		{"id taken", queue.Effects{KV: []queue.KVChange{set("x", "")}, Jobs: []*queue.JobSpec{spec("ok", "new"), spec("taken", "w", taken)}}, jobhost.CodeConflict},
		{"id given twice", queue.Effects{Jobs: []*queue.JobSpec{spec("ok", "new"), spec("ok", "w", taken)}}, jobhost.CodeConflict},
	} {
		id := fmt.Sprint("job-", i)
		key := s.submit(spec(id, "w"))
		op := effective(key, &tt.effects)
		op.Result, op.Log = []byte("result"), []byte("log\n")
		res := s.do(&queue.Submit{Job: spec(id+"-before", "w")}, op, &queue.Submit{Job: spec(id+"-after", "w")})
		if res[0].Err != nil || res[2].Err != nil {
			t.Fatalf("%s: the neighbours got %v, %v", tt.name, res[0].Err, res[2].Err)
		}
		wantCode(t, res[1].Err, tt.code)
		s.wantKey("x", "-")
		if _, err := s.Job(t.Context(), "ok"); jobhost.CodeOf(err) != jobhost.CodeNotFound {
			t.Fatalf("%s: a job was submitted: %v", tt.name, err)
		}
		job := s.job(id)
		if job.Tasks[0].Status != queue.Open || job.Tasks[0].Attempt != 0 {
			t.Fatalf("%s: the task is %+v", tt.name, job.Tasks[0])
		}
		s.succeed(key) // under the same lease
		if logs, err := s.Logs(t.Context(), key); err != nil || len(logs) != 0 {
			t.Fatalf("%s: logs %v, %v", tt.name, logs, err)
		}
	}
	s.checkCounts()
}

// testChildren: a job submits a bounded number of jobs, and a child that is
// there is no new one.
func testChildren(t *testing.T, h Harness) {
	s := open(t, h)
	key := s.submit(spec("parent", "w", tasks(2)))
	parent := s.job("parent")
	many := &queue.Effects{}
	for i := range jobhost.MaxChildren - 2 {
		many.Jobs = append(many.Jobs, spec(fmt.Sprint("child-", i), "w", childOf(&parent, 1)))
	}
	s.must(effective(key+1, many))
	s.submit(spec("now", "w", childOf(&parent, 1)))
	family, err := s.Family(t.Context(), key)
	if err != nil || family != (queue.Family{Children: jobhost.MaxChildren - 1}) {
		t.Fatalf("the family is %+v, %v", family, err)
	}
	first, last := spec("child-0", "w", childOf(&parent, 1)), spec("last", "w", childOf(&parent, 0))
	over := &queue.Effects{Jobs: []*queue.JobSpec{last, spec("over", "w", childOf(&parent, 0))}}
	s.refused(effective(key, over), jobhost.CodeExhausted)
	res := s.must(effective(key, &queue.Effects{Jobs: []*queue.JobSpec{first, last, last}}))
	if !res.Jobs[0].Existing || res.Jobs[1].Existing || !res.Jobs[2].Existing || res.Jobs[2].Key != res.Jobs[1].Key {
		t.Fatalf("the children are %+v", res.Jobs)
	}
	s.refused(&queue.Submit{Job: spec("over", "w", childOf(&parent, 0))}, jobhost.CodeExhausted)
	if again := s.must(&queue.Submit{Job: first}); !again.Existing {
		t.Fatalf("a child that is there was submitted again: %+v", again)
	}
	child := s.job("last")
	grandchild := s.submit(spec("grandchild", "w", childOf(&child, 0)))
	family, err = s.Family(t.Context(), grandchild)
	if err != nil || family != (queue.Family{Depth: 2}) {
		t.Fatalf("the grandchild's family is %+v, %v", family, err)
	}
	_, err = s.Family(t.Context(), 1<<40)
	wantCode(t, err, jobhost.CodeNotFound)

	// Another job of the same id begins anew, and the children of the first stay.
	s.must(&queue.Delete{ID: "parent"})
	again := s.submit(spec("parent", "w"))
	if family, err = s.Family(t.Context(), again); err != nil || family != (queue.Family{}) {
		t.Fatalf("the family of another job is %+v, %v", family, err)
	}
	wantSame(t, "parents", s.job("last").Parent, &queue.Parent{ID: "parent", Key: key, Depth: 1})
}
