package queuetest

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/state/payload"
)

// ref returns a reference to an object, as far as a store looks at it.
func ref(key string) string { return payload.Name("s", key) + "100:rest" }

func withRef(key string) func(*record.JobSpec) {
	return func(s *record.JobSpec) { s.Payload, s.Ref = nil, ref(key) }
}

func (s store) wantGone(keys ...string) {
	s.t.Helper()
	refs, err := s.Gone(s.t.Context(), "", 100)
	if err != nil {
		s.t.Fatal(err)
	}
	var want []string
	for _, key := range keys {
		want = append(want, ref(key))
	}
	slices.Sort(want)
	wantSame(s.t, "references that are gone", refs, want)
}

func (s store) wantLive(keys ...string) {
	s.t.Helper()
	all := []string{"a", "b", "c", "r", "r0", "r1", "never", "aa"}
	var names []string
	for _, key := range all {
		names = append(names, payload.Name("s", key))
	}
	live, err := s.Live(s.t.Context(), names)
	if err != nil || len(live) != len(names) {
		s.t.Fatalf("%d answers, %v", len(live), err)
	}
	var got []string
	for i, key := range all {
		if live[i] {
			got = append(got, key)
		}
	}
	wantSame(s.t, "references that are live", got, keys)
}

// testObjects follows references from the job that brings them to their end.
func testObjects(t *testing.T, h Harness) {
	s := open(t, h)
	key := s.submit(spec("job", "w", withRef("a"), tasks(2)))
	s.wantLive("a")
	for i, name := range []string{"r0", "r1"} {
		op := settlement(key+record.Key(i), record.Succeeded)
		op.ResultRef, op.ResultSize = ref(name), 1<<40
		s.must(op)
	}
	s.wantLive("a", "r0", "r1")
	job := s.job("job")
	if job.Ref != ref("a") || job.PayloadSize != 0 || job.Tasks[1].ResultRef != ref("r1") || job.Tasks[1].ResultSize != 1<<40 {
		t.Fatalf("got %+v", job)
	}
	if h.Reopen != nil {
		s.Store = h.Reopen(t, s.Store)
	}
	bodies := s.load(s.submit(spec("open", "w", withRef("b"))))
	if len(bodies) != 1 || bodies[0].Job.Ref != ref("b") || len(bodies[0].Job.Payload) != 0 {
		t.Fatalf("got %+v", bodies)
	}
	s.wantGone()
	if res := s.must(&record.Delete{ID: "job"}); !res.Gone {
		t.Error("what is gone was not reported")
	}
	s.wantGone("a", "r0", "r1")
	s.wantLive("b")
	s.must(&record.Forget{Refs: []string{ref("a"), ref("r1"), ref("never"), ref("b")}})
	s.wantGone("r0")
	s.wantLive("b")
	for _, page := range []struct {
		after string
		limit int
	}{{"", 0}, {ref("r0"), 10}} {
		if refs, err := s.Gone(t.Context(), page.after, page.limit); len(refs) != 0 || err != nil {
			t.Errorf("a page of %d after %q: %v, %v", page.limit, page.after, refs, err)
		}
	}
}

// testObjectsTidied removes jobs in every way in which they are removed.
func testObjectsTidied(t *testing.T, h Harness) {
	s := open(t, h)
	op := settlement(s.submit(spec("over", "w", withRef("a"))), record.Succeeded)
	op.ResultRef, op.ResultSize, op.ExpiresAt = ref("r"), 5, epoch+100
	s.must(op)
	if res := s.must(&record.Tidy{At: epoch + 50, Limit: 10}); res.Gone {
		t.Error("something is gone before its time")
	}
	if res := s.must(&record.Tidy{At: epoch + 100, Limit: 10}); !res.Gone {
		t.Error("what is gone was not reported")
	}
	s.wantGone("a", "r")
	for i, name := range []string{"b", "c"} {
		dead := settlement(s.submit(spec(fmt.Sprint("dead", i), "w", withRef(name))), record.Dead)
		dead.MaxDead = 1
		if res := s.must(dead); res.Gone != (i == 1) {
			t.Errorf("death %d: Gone is %v", i, res.Gone)
		}
	}
	s.wantGone("a", "b", "r")
	s.wantLive("c")
}

// testObjectsTaken submits references that belong to other jobs.
func testObjectsTaken(t *testing.T, h Harness) {
	s := open(t, h)
	first := spec("first", "w", withRef("a"))
	key := s.submit(first)
	if res := s.must(&record.Submit{Job: spec("first", "w", withRef("a"))}); !res.Existing {
		t.Error("the same job is another one")
	}
	if res := s.must(&record.Submit{Job: spec("first", "w", withRef("b"))}); !res.Existing {
		t.Error("the same content elsewhere makes another job")
	}
	s.wantLive("a")
	wantCode(t, s.do(&record.Submit{Job: spec("second", "new", withRef("a"))})[0].Err, jobhost.CodeConflict)
	both := s.do(&record.Submit{Job: spec("x", "w", withRef("c"))}, &record.Submit{Job: spec("y", "w", withRef("c"))})
	if both[0].Err != nil {
		t.Error(both[0].Err)
	}
	wantCode(t, both[1].Err, jobhost.CodeConflict)
	s.succeed(key)
	s.must(&record.Delete{ID: "first"})
	wantCode(t, s.do(&record.Submit{Job: spec("second", "w", withRef("a"))})[0].Err, jobhost.CodeConflict)
	s.wantGone("a")

	refused := settlement(key, record.Succeeded) // its task is gone
	refused.ResultRef = ref("r")
	wantFenced(t, s.do(refused)[0])
	s.wantLive("c")
	s.wantGone("a")
}

// genRef draws a reference of a job, few enough that some meet; mostly none.
func genRef() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		if key := rapid.SampledFrom([]string{"", "", "", "a", "b", "c"}).Draw(t, "ref"); key != "" {
			return ref(key)
		}
		return ""
	})
}

// genResult may draw a reference to a result that no other has.
func genResult(t *rapid.T, m *model, op *record.Settle) {
	if rapid.IntRange(0, 3).Draw(t, "large") == 0 {
		m.results++
		op.Result, op.ResultRef, op.ResultSize = nil, ref(fmt.Sprint("result", m.results)), int64(m.results)
	}
}

// checkObjects asks the store and the model which objects there are.
func checkObjects(t *testing.T, rt *rapid.T, s record.Store, m *model) {
	gone, err := s.Gone(t.Context(), "", 1000)
	if err != nil {
		rt.Fatal(err)
	}
	got := map[string]string{}
	for _, text := range gone {
		got[payload.NameOf(text)] = text
	}
	same(rt, "references that are gone", got, m.gone)
	var names []string
	for name := range m.objects {
		names = append(names, name)
	}
	for name := range m.gone {
		names = append(names, name)
	}
	live, err := s.Live(t.Context(), names)
	if err != nil {
		rt.Fatal(err)
	}
	for i, name := range names {
		if live[i] != (m.objects[name] != "") {
			rt.Fatalf("%s is live: %v", name, live[i])
		}
	}
}

// clearObjects forgets all references.
func clearObjects(t *testing.T, rt *rapid.T, s record.Store) {
	refs, err := s.Gone(t.Context(), "", 1000)
	if err == nil {
		_, err = commit(s, &record.Forget{Refs: refs})
	}
	if err != nil {
		rt.Fatal(err)
	}
}
