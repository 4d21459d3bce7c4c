// Package queuetest is the suite that every [queue.Store] passes. A store's
// own test is a harness: how to open an empty one and how to open again what
// another left behind.
package queuetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
)

// Harness is how the suite gets at stores.
type Harness struct {
	// Open returns an empty store that is closed when the test ends. The suite
	// may have closed it before: closing twice must be fine.
	Open func(t testing.TB) queue.Store
	// Reopen closes the store and returns one with what it left behind, closed
	// when the test ends. Nil = the stores leave nothing behind.
	Reopen func(t testing.TB, s queue.Store) queue.Store
}

// Run runs the suite. Its subtests run in parallel with each other.
func Run(t *testing.T, h Harness) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, h Harness)
	}{
		{"submit", testSubmit},
		{"submit again", testSubmitAgain},
		{"batch", testBatch},
		{"callbacks", testCallbacks},
		{"settle", testSettle},
		{"fencing", testFencing},
		{"failures and logs", testRecords},
		{"job with many tasks", testManyTasks},
		{"results", testResults},
		{"cancel", testCancel},
		{"revive", testRevive},
		{"delete", testDelete},
		{"fire", testFire},
		{"fire at once", testFireAtOnce},
		{"list labels", testListLabels},
		{"tidy", testTidy},
		{"rewind", testRewind},
		{"tidy with the first job", testTidyAtOnce},
		{"tidy in pieces", testTidyInPieces},
		{"tidy at once", testTidyAtOnce},
		{"evict", testEvict},
		{"single tasks", testSingleTasks},
		{"dead letters", testDead},
		{"dead letters in pages", testDeadPages},
		{"deaths", testDeaths},
		{"claim order", testClaimOrder},
		{"claim pages", testClaimPages},
		{"load", testLoad},
		{"list", testList},
		{"list pages", testListPages},
		{"list by time", testListByTime},
		{"missing", testMissing},
		{"cancelled context", testContext},
		{"closed", testClosed},
		{"reopen", testReopen},
		{"hammer", testHammer},
		{"property", testProperty},
		{"effects", testEffects},
		{"effects refused", testEffectsRefused},
		{"children", testChildren},
		{"keys", testKeys},
		{"keys expire", testKeysExpire},
		{"quota", testQuota},
		{"list keys", testListKeys},
		{"exactly once", testExactlyOnce},
		{"items", testItems},
		{"options of steps", testStepOptions},
		{"objects", testObjects},
		{"objects tidied", testObjectsTidied},
		{"objects taken", testObjectsTaken},
		{"states elsewhere", testStates},
		{"states elsewhere tidied", testStatesTidied},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, h)
		})
	}
}

// store is a [queue.Store] with the verbs of a test, which fail it on errors.
type store struct {
	queue.Store
	t testing.TB
}

func open(t testing.TB, h Harness) store { return store{Store: h.Open(t), t: t} }

// commit hands over a batch and waits for its results.
func commit(s queue.Store, ops ...queue.Op) ([]queue.OpResult, error) {
	type answer struct {
		res []queue.OpResult
		err error
	}
	done := make(chan answer, 1)
	s.Commit(ops, func(res []queue.OpResult, err error) { done <- answer{res, err} })
	a := <-done
	if a.err == nil && len(a.res) != len(ops) {
		return nil, fmt.Errorf("%d results for %d operations", len(a.res), len(ops))
	}
	return a.res, a.err
}

// do commits a batch that must be applied as a whole; operations may be refused.
func (s store) do(ops ...queue.Op) []queue.OpResult {
	s.t.Helper()
	res, err := commit(s.Store, ops...)
	if err != nil {
		s.t.Fatalf("commit: %v", err)
	}
	return res
}

// must commits one operation, which must not be refused.
func (s store) must(op queue.Op) queue.OpResult {
	s.t.Helper()
	res := s.do(op)[0]
	if res.Err != nil {
		s.t.Fatalf("%T: %v", op, res.Err)
	}
	return res
}

// submit adds a job and returns its key.
func (s store) submit(spec *queue.JobSpec) queue.Key {
	s.t.Helper()
	return s.must(&queue.Submit{Job: spec}).Key
}

// succeed settles a task under its first lease.
func (s store) succeed(key queue.Key) queue.OpResult {
	s.t.Helper()
	return s.must(settlement(key, queue.Succeeded))
}

func (s store) job(id string) queue.JobRecord {
	s.t.Helper()
	job, err := s.Job(s.t.Context(), id)
	if err != nil {
		s.t.Fatalf("job %s: %v", id, err)
	}
	return job
}

func (s store) list(q queue.ListQuery) []queue.JobRecord {
	s.t.Helper()
	if q.Limit == 0 {
		q.Limit = 1000
	}
	jobs, err := s.Jobs(s.t.Context(), q)
	if err != nil {
		s.t.Fatalf("list: %v", err)
	}
	return jobs
}

func (s store) claim(worker string, after queue.Place, limit int) []queue.Claimed {
	s.t.Helper()
	claimed, err := s.Claim(s.t.Context(), worker, after, limit)
	if err != nil {
		s.t.Fatalf("claim: %v", err)
	}
	return claimed
}

func (s store) load(keys ...queue.Key) []queue.Body {
	s.t.Helper()
	bodies, err := s.Load(s.t.Context(), keys)
	if err != nil {
		s.t.Fatalf("load: %v", err)
	}
	return bodies
}

func (s store) counts() map[string]queue.StatusCounts {
	s.t.Helper()
	counts, err := s.Counts(s.t.Context())
	if err != nil {
		s.t.Fatalf("counts: %v", err)
	}
	return counts
}

// checkCounts compares the counters with a recount of all tasks.
func (s store) checkCounts() {
	s.t.Helper()
	if err := Recount(s.t.Context(), s.Store); err != nil {
		s.t.Fatal(err)
	}
}

// Recount compares the counters of a store with its tasks, one by one. It is
// for tests that did something drastic to a store.
func Recount(ctx context.Context, s queue.Store) error {
	want := make(map[string]queue.StatusCounts)
	below := queue.Key(0)
	for {
		jobs, err := s.Jobs(ctx, queue.ListQuery{Below: below, Limit: 100})
		if err != nil {
			return err
		}
		if len(jobs) == 0 {
			break
		}
		for i := range jobs {
			c := want[jobs[i].Worker]
			for _, task := range jobs[i].Tasks {
				c[task.Status]++
			}
			want[jobs[i].Worker] = c
		}
		below = jobs[len(jobs)-1].Key
	}
	got, err := s.Counts(ctx)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(want, withoutZeros(got), cmpopts.EquateEmpty()); diff != "" {
		return fmt.Errorf("counters differ from a recount (-recount +counters):\n%s", diff)
	}
	return nil
}

func withoutZeros(counts map[string]queue.StatusCounts) map[string]queue.StatusCounts {
	for worker, c := range counts {
		if c == (queue.StatusCounts{}) {
			delete(counts, worker)
		}
	}
	return counts
}

// epoch is when the jobs of the suite are created, unless they say otherwise.
const epoch queue.Millis = 1_700_000_000_000

// spec returns a job of one task; mod may change it.
func spec(id, worker string, mod ...func(*queue.JobSpec)) *queue.JobSpec {
	s := &queue.JobSpec{
		ID: id, Worker: worker, Payload: []byte("payload of " + id), Tasks: 1, Priority: jobhost.Normal,
		MaxAttempts: 3, Timeout: 30 * time.Second, CreatedAt: epoch, ReadyAt: epoch, Digest: [16]byte{1},
	}
	for _, m := range mod {
		m(s)
	}
	return s
}

func tasks(n int) func(*queue.JobSpec) { return func(s *queue.JobSpec) { s.Tasks = n } }

func createdAt(at queue.Millis) func(*queue.JobSpec) {
	return func(s *queue.JobSpec) { s.CreatedAt = at }
}

func readyAt(at queue.Millis) func(*queue.JobSpec) {
	return func(s *queue.JobSpec) { s.ReadyAt = at }
}

// settlement returns a settlement under a task's first lease.
func settlement(key queue.Key, status queue.Status) *queue.Settle {
	s := &queue.Settle{Key: key, Status: status, Attempt: 1, StartedAt: epoch + 10, EndedAt: epoch + 20}
	if status == queue.Open {
		s.ReadyAt = epoch + 1000
	}
	return s
}

// wantCode fails the test unless the error has the code.
func wantCode(t testing.TB, err error, code jobhost.Code) {
	t.Helper()
	if got := jobhost.CodeOf(err); got != code {
		t.Fatalf("got error %v with code %q, want code %q", err, got, code)
	}
}

// wantFenced fails the test unless the operation was refused with ErrFenced.
func wantFenced(t testing.TB, res queue.OpResult) {
	t.Helper()
	if !errors.Is(res.Err, queue.ErrFenced) {
		t.Fatalf("got error %v, want ErrFenced", res.Err)
	}
}

// wantSame fails the test unless both are the same, nil and empty being so too.
func wantSame(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%s differ (-want +got):\n%s", what, diff)
	}
}

func ids(jobs []queue.JobRecord) []string {
	var out []string
	for i := range jobs {
		out = append(out, jobs[i].ID)
	}
	return out
}
