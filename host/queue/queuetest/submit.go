package queuetest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// full is a job that uses every field.
func full(id, worker string) *record.JobSpec {
	return spec(id, worker, func(s *record.JobSpec) {
		s.Payload = []byte{0, 1, 2, 255}
		s.ContentType, s.Entry = "text/plain", "resize"
		s.Priority, s.Tasks, s.MaxAttempts = jobhost.Background, 2, 7
		s.Labels = map[string]string{"city": "Zürich", "quote": `a"b\c`, "empty": ""}
		s.ReadyAt = epoch + 5
		s.Digest = [16]byte{15: 9}
	})
}

func testSubmit(t *testing.T, h Harness) {
	s := open(t, h)
	want := full("a", "w")
	res := s.must(&record.Submit{Job: full("a", "w")})
	if res.Key == 0 || res.Existing || res.JobEnded {
		t.Fatalf("unexpected result %+v", res)
	}
	want.Key = res.Key
	got := s.job("a")
	wantSame(t, "specs", got.JobSpec, *want)
	wantSame(t, "tasks", got.Tasks, []record.TaskRecord{
		{Key: res.Key, Index: 0, ReadyAt: epoch + 5},
		{Key: res.Key + 1, Index: 1, ReadyAt: epoch + 5},
	})
	if got.PayloadSize != 4 || got.EndedAt != 0 || len(got.Failures) != 0 {
		t.Fatalf("unexpected record %+v", got)
	}
	if next := s.submit(spec("b", "w")); next < res.Key+2 {
		t.Fatalf("key %d of the next job lies within the first, which begins at %d", next, res.Key)
	}
	empty := s.submit(spec("c", "w", func(s *record.JobSpec) { s.Payload = nil }))
	if got := s.job("c"); got.Key != empty || got.PayloadSize != 0 || len(got.Payload) != 0 {
		t.Fatalf("unexpected record of an empty payload %+v", got)
	}
	wantSame(t, "counts", s.counts(), map[string]record.StatusCounts{"w": {record.Open: 4}})
}

func testSubmitAgain(t *testing.T, h Harness) {
	s := open(t, h)
	key := s.submit(spec("a", "w"))
	other := spec("a", "unheard-of", func(s *record.JobSpec) { s.Digest = [16]byte{2} })

	again := s.must(&record.Submit{Job: spec("a", "w")})
	if again.Key != key || !again.Existing {
		t.Fatalf("same content: got %+v, want the existing job %d", again, key)
	}
	wantCode(t, s.do(&record.Submit{Job: other})[0].Err, jobhost.CodeConflict)

	// Within one batch the later one finds the earlier one.
	res := s.do(
		&record.Submit{Job: spec("b", "w", tasks(3))}, &record.Submit{Job: spec("b", "w", tasks(3))},
		&record.Submit{Job: spec("b", "w", func(s *record.JobSpec) { s.Digest = [16]byte{7} })},
		&record.Submit{Job: spec("c", "w")},
	)
	if res[0].Existing || !res[1].Existing || res[1].Key != res[0].Key {
		t.Fatalf("same id in one batch: got %+v", res)
	}
	wantCode(t, res[2].Err, jobhost.CodeConflict)
	if res[3].Err != nil {
		t.Fatalf("the refusal of another operation spoiled this one: %v", res[3].Err)
	}
	s.succeed(key)
	if ended := s.must(&record.Submit{Job: spec("a", "w")}); !ended.Existing {
		t.Fatal("a job that has ended is forgotten")
	}
	wantSame(t, "counts", s.counts(), map[string]record.StatusCounts{"w": {record.Open: 4, record.Succeeded: 1}})

	// A hundred at once make one job.
	var wg sync.WaitGroup
	fresh := make(chan record.Key, 100)
	for range 100 {
		wg.Go(func() {
			res, err := commit(s.Store, &record.Submit{Job: spec("once", "w")})
			if err != nil || res[0].Err != nil {
				t.Errorf("submit: %v, %+v", err, res)
			} else if !res[0].Existing {
				fresh <- res[0].Key
			}
		})
	}
	wg.Wait()
	if len(fresh) != 1 {
		t.Fatalf("100 submits with one id made %d jobs", len(fresh))
	}
	s.checkCounts()
}

// testCallbacks commits without waiting: who is told of one change must have
// been told of those before it.
func testCallbacks(t *testing.T, h Harness) {
	s := open(t, h)
	const jobs = 40
	var order []string // the store says one after the other
	var told sync.WaitGroup
	told.Add(3 * jobs)
	then := func(what string) func([]record.OpResult, error) {
		return func(res []record.OpResult, err error) {
			defer told.Done()
			if err != nil || res[0].Err != nil {
				t.Errorf("%s: %v, %+v", what, err, res)
			}
			order = append(order, what)
		}
	}
	var want []string
	for i := range jobs {
		id := fmt.Sprint("j", i)
		s.Commit([]record.Op{&record.Submit{Job: spec(id, "w")}}, then("submit "+id))
		s.Commit([]record.Op{&record.Cancel{ID: id, At: epoch}}, then("cancel "+id))
		s.Commit([]record.Op{&record.Revive{ID: id, At: epoch}}, then("revive "+id))
		want = append(want, "submit "+id, "cancel "+id, "revive "+id)
	}
	told.Wait()
	wantSame(t, "callbacks", order, want)
}

func testBatch(t *testing.T, h Harness) {
	s := open(t, h)
	if res := s.do(); len(res) != 0 {
		t.Fatalf("an empty batch has %d results", len(res))
	}
	var ops []record.Op
	for i := range 50 {
		ops = append(ops, &record.Submit{Job: spec(fmt.Sprintf("j%02d", i), "w", tasks(1+i%3))})
	}
	res := s.do(ops...)
	for i := 1; i < len(res); i++ {
		if res[i].Key < res[i-1].Key+record.Key(1+(i-1)%3) {
			t.Fatalf("key %d of job %d does not follow %d", res[i].Key, i, res[i-1].Key)
		}
	}
	// A mixed batch: each operation sees the ones before it.
	mixed := s.do(
		&record.Submit{Job: spec("x", "w")},
		&record.Cancel{ID: "x", At: epoch + 1},
		&record.Delete{ID: "x"},
		&record.Cancel{ID: "x", At: epoch + 1},
		&record.Submit{Job: spec("x", "w")},
		settlement(res[0].Key, record.Succeeded),
		settlement(res[0].Key, record.Succeeded),
	)
	for _, i := range []int{0, 1, 2, 4, 5} {
		if mixed[i].Err != nil {
			t.Fatalf("operation %d: %v", i, mixed[i].Err)
		}
	}
	wantCode(t, mixed[3].Err, jobhost.CodeNotFound)
	wantFenced(t, mixed[6])
	if mixed[4].Existing || mixed[4].Key <= mixed[0].Key {
		t.Fatalf("submit after delete: got %+v", mixed[4])
	}
	s.checkCounts()
}
