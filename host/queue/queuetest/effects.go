package queuetest

import (
	"fmt"
	"math"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// effective returns a settlement that succeeds with effects.
func effective(key record.Key, e *record.Effects) *record.Settle {
	op := settlement(key, record.Succeeded)
	op.Effects = e
	return op
}

func set(key, value string) record.KVChange { return record.KVChange{Key: key, Value: []byte(value)} }

func add(key string, delta int64) record.KVChange {
	return record.KVChange{Key: key, Kind: record.KVAdd, Delta: delta}
}

// change changes keys of worker w, which must not be refused.
func (s store) change(at record.Millis, changes ...record.KVChange) {
	s.t.Helper()
	s.must(&record.ChangeKV{Worker: "w", At: at, Changes: changes})
}

// refused makes a change of keys that must be refused.
func (s store) refused(op record.Op, code jobhost.Code) {
	s.t.Helper()
	wantCode(s.t, s.do(op)[0].Err, code)
}

// wantKey checks the value of a key of worker w; "-" = it isn't there.
func (s store) wantKey(key, want string) record.KVEntry {
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
func childOf(parent *record.JobRecord, task int) func(*record.JobSpec) {
	depth := 1
	if parent.Parent != nil {
		depth += parent.Parent.Depth
	}
	p := &record.Parent{ID: parent.ID, Key: parent.Key, Task: task, Depth: depth}
	return func(s *record.JobSpec) { s.Parent = p }
}

// testEffects: effects come with success, and with nothing else.
func testEffects(t *testing.T, h Harness) {
	s := open(t, h)
	key := s.submit(spec("parent", "w", tasks(2)))
	parent := s.job("parent")
	labelled := func(s *record.JobSpec) { s.Labels = map[string]string{"a": "b"} }
	effects := func() *record.Effects {
		return &record.Effects{
			KV:   []record.KVChange{set("name", "value"), add("count", 2)},
			Jobs: []*record.JobSpec{spec("child", "x", tasks(3), childOf(&parent, 0), labelled), spec("other", "new", childOf(&parent, 0))},
		}
	}
	retry := settlement(key, record.Open)
	retry.Effects = effects()
	s.must(retry)
	dead := settlement(key+1, record.Dead)
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
	wantSame(t, "parents", child.Parent, &record.Parent{ID: "parent", Key: key, Depth: 1})
	wantSame(t, "labels", child.Labels, map[string]string{"a": "b"})
	if got := s.claim("x", record.Place{}, 10); len(got) != 3 || got[0].Key != res.Jobs[0].Key {
		t.Fatalf("claimed %+v", got)
	}
	wantSame(t, "children", ids(s.list(record.ListQuery{Parent: "parent"})), []string{"other", "child"})
	wantSame(t, "children of one worker", ids(s.list(record.ListQuery{Parent: "parent", Worker: "x"})), []string{"child"})
	wantSame(t, "nobody's children", ids(s.list(record.ListQuery{Parent: "child"})), []string(nil))
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
	taken := func(s *record.JobSpec) { s.Digest[0] = 9 }
	s.submit(spec("taken", "w"))
	for i, tt := range []struct {
		name    string
		effects record.Effects
		code    jobhost.Code
	}{
		{"changed meanwhile", record.Effects{KV: []record.KVChange{set("x", ""), {Key: "seen", Checked: true, Version: version}}}, jobhost.CodeConflict},
		{"made meanwhile", record.Effects{KV: []record.KVChange{set("x", ""), {Key: "seen", Checked: true}}}, jobhost.CodeConflict},
		{"gone meanwhile", record.Effects{KV: []record.KVChange{set("x", ""), {Key: "none", Checked: true, Version: 1}}}, jobhost.CodeConflict},
		{"no number", record.Effects{KV: []record.KVChange{set("x", ""), add("text", 1)}}, jobhost.CodeConflict},
		{"too large a number", record.Effects{KV: []record.KVChange{set("x", ""), add("max", 1)}}, jobhost.CodeConflict},
		{"quota", record.Effects{KV: []record.KVChange{set("x", "")}, Quota: 10}, jobhost.CodeExhausted},
		{"id taken", record.Effects{KV: []record.KVChange{set("x", "")}, Jobs: []*record.JobSpec{spec("ok", "new"), spec("taken", "w", taken)}}, jobhost.CodeConflict},
		{"id given twice", record.Effects{Jobs: []*record.JobSpec{spec("ok", "new"), spec("ok", "w", taken)}}, jobhost.CodeConflict},
	} {
		id := fmt.Sprint("job-", i)
		key := s.submit(spec(id, "w"))
		op := effective(key, &tt.effects)
		op.Result, op.Log = []byte("result"), []byte("log\n")
		res := s.do(&record.Submit{Job: spec(id+"-before", "w")}, op, &record.Submit{Job: spec(id+"-after", "w")})
		if res[0].Err != nil || res[2].Err != nil {
			t.Fatalf("%s: the neighbours got %v, %v", tt.name, res[0].Err, res[2].Err)
		}
		wantCode(t, res[1].Err, tt.code)
		s.wantKey("x", "-")
		if _, err := s.Job(t.Context(), "ok"); jobhost.CodeOf(err) != jobhost.CodeNotFound {
			t.Fatalf("%s: a job was submitted: %v", tt.name, err)
		}
		job := s.job(id)
		if job.Tasks[0].Status != record.Open || job.Tasks[0].Attempt != 0 {
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
	many := &record.Effects{}
	for i := range jobhost.MaxChildren - 2 {
		many.Jobs = append(many.Jobs, spec(fmt.Sprint("child-", i), "w", childOf(&parent, 1)))
	}
	s.must(effective(key+1, many))
	s.submit(spec("now", "w", childOf(&parent, 1)))
	family, err := s.Family(t.Context(), key)
	if err != nil || family != (record.Family{Children: jobhost.MaxChildren - 1}) {
		t.Fatalf("the family is %+v, %v", family, err)
	}
	first, last := spec("child-0", "w", childOf(&parent, 1)), spec("last", "w", childOf(&parent, 0))
	over := &record.Effects{Jobs: []*record.JobSpec{last, spec("over", "w", childOf(&parent, 0))}}
	s.refused(effective(key, over), jobhost.CodeExhausted)
	res := s.must(effective(key, &record.Effects{Jobs: []*record.JobSpec{first, last, last}}))
	if !res.Jobs[0].Existing || res.Jobs[1].Existing || !res.Jobs[2].Existing || res.Jobs[2].Key != res.Jobs[1].Key {
		t.Fatalf("the children are %+v", res.Jobs)
	}
	s.refused(&record.Submit{Job: spec("over", "w", childOf(&parent, 0))}, jobhost.CodeExhausted)
	if again := s.must(&record.Submit{Job: first}); !again.Existing {
		t.Fatalf("a child that is there was submitted again: %+v", again)
	}
	child := s.job("last")
	grandchild := s.submit(spec("grandchild", "w", childOf(&child, 0)))
	family, err = s.Family(t.Context(), grandchild)
	if err != nil || family != (record.Family{Depth: 2}) {
		t.Fatalf("the grandchild's family is %+v, %v", family, err)
	}
	_, err = s.Family(t.Context(), 1<<40)
	wantCode(t, err, jobhost.CodeNotFound)

	// Another job of the same id begins anew, and the children of the first stay.
	s.must(&record.Delete{ID: "parent"})
	again := s.submit(spec("parent", "w"))
	if family, err = s.Family(t.Context(), again); err != nil || family != (record.Family{}) {
		t.Fatalf("the family of another job is %+v, %v", family, err)
	}
	wantSame(t, "parents", s.job("last").Parent, &record.Parent{ID: "parent", Key: key, Depth: 1})
}
