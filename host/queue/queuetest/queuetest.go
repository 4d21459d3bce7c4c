// Package queuetest is the suite that every [record.Store] passes. A store's
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
	"github.com/jobhost/jobhost/host/queue/record"
)

// Harness is how the suite gets at stores.
type Harness struct {
	// Open returns an empty store that is closed when the test ends. The suite
	// may have closed it before: closing twice must be fine.
	Open func(t testing.TB) record.Store
	// Reopen closes the store and returns one with what it left behind, closed
	// when the test ends. Nil = the stores leave nothing behind.
	Reopen func(t testing.TB, s record.Store) record.Store
	// Fault lets a store meet the fault that most likely leaves it open what became of
	// a commit, such as a connection that is cut. Nil = there is none that can be made here.
	Fault func(t testing.TB, s record.Store)
	// Slow says that a commit takes milliseconds: the property is then checked fewer times,
	// unless JOBHOST_CHAOS=1 (make chaos).
	Slow bool
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
		{"outcome", testOutcome},
		{"now", testNow},
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

// store is a [record.Store] with the verbs of a test, which fail it on errors.
type store struct {
	record.Store
	t testing.TB
}

func open(t testing.TB, h Harness) store { return store{Store: h.Open(t), t: t} }

// commit hands over a batch and waits for its results.
func commit(s record.Store, ops ...record.Op) ([]record.OpResult, error) {
	type answer struct {
		res []record.OpResult
		err error
	}
	done := make(chan answer, 1)
	s.Commit(ops, func(res []record.OpResult, err error) { done <- answer{res, err} })
	a := <-done
	if a.err == nil && len(a.res) != len(ops) {
		return nil, fmt.Errorf("%d results for %d operations", len(a.res), len(ops))
	}
	return a.res, a.err
}

// do commits a batch that must be applied as a whole; operations may be refused.
func (s store) do(ops ...record.Op) []record.OpResult {
	s.t.Helper()
	res, err := commit(s.Store, ops...)
	if err != nil {
		s.t.Fatalf("commit: %v", err)
	}
	return res
}

// must commits one operation, which must not be refused.
func (s store) must(op record.Op) record.OpResult {
	s.t.Helper()
	res := s.do(op)[0]
	if res.Err != nil {
		s.t.Fatalf("%T: %v", op, res.Err)
	}
	return res
}

// submit adds a job and returns its key.
func (s store) submit(spec *record.JobSpec) record.Key {
	s.t.Helper()
	return s.must(&record.Submit{Job: spec}).Key
}

// succeed settles a task under its first lease.
func (s store) succeed(key record.Key) record.OpResult {
	s.t.Helper()
	return s.must(settlement(key, record.Succeeded))
}

func (s store) job(id string) record.JobRecord {
	s.t.Helper()
	job, err := s.Job(s.t.Context(), id)
	if err != nil {
		s.t.Fatalf("job %s: %v", id, err)
	}
	return job
}

func (s store) list(q record.ListQuery) []record.JobRecord {
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

func (s store) claim(worker string, after record.Place, limit int) []record.Claimed {
	s.t.Helper()
	claimed, err := s.Claim(s.t.Context(), worker, after, limit)
	if err != nil {
		s.t.Fatalf("claim: %v", err)
	}
	return claimed
}

func (s store) load(keys ...record.Key) []record.Body {
	s.t.Helper()
	bodies, err := s.Load(s.t.Context(), keys)
	if err != nil {
		s.t.Fatalf("load: %v", err)
	}
	return bodies
}

func (s store) counts() map[string]record.StatusCounts {
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
func Recount(ctx context.Context, s record.Store) error {
	want := make(map[string]record.StatusCounts)
	below := record.Key(0)
	for {
		jobs, err := s.Jobs(ctx, record.ListQuery{Below: below, Limit: 100})
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

func withoutZeros(counts map[string]record.StatusCounts) map[string]record.StatusCounts {
	for worker, c := range counts {
		if c == (record.StatusCounts{}) {
			delete(counts, worker)
		}
	}
	return counts
}

// epoch is when the jobs of the suite are created, unless they say otherwise.
const epoch record.Millis = 1_700_000_000_000

// spec returns a job of one task; mod may change it.
func spec(id, worker string, mod ...func(*record.JobSpec)) *record.JobSpec {
	s := &record.JobSpec{
		ID: id, Worker: worker, Payload: []byte("payload of " + id), Tasks: 1, Priority: jobhost.Normal,
		MaxAttempts: 3, Timeout: 30 * time.Second, CreatedAt: epoch, ReadyAt: epoch, Digest: [16]byte{1},
	}
	for _, m := range mod {
		m(s)
	}
	return s
}

func tasks(n int) func(*record.JobSpec) { return func(s *record.JobSpec) { s.Tasks = n } }

func createdAt(at record.Millis) func(*record.JobSpec) {
	return func(s *record.JobSpec) { s.CreatedAt = at }
}

func readyAt(at record.Millis) func(*record.JobSpec) {
	return func(s *record.JobSpec) { s.ReadyAt = at }
}

// settlement returns a settlement under a task's first lease.
func settlement(key record.Key, status record.Status) *record.Settle {
	s := &record.Settle{Key: key, Status: status, Attempt: 1, StartedAt: epoch + 10, EndedAt: epoch + 20}
	if status == record.Open {
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
func wantFenced(t testing.TB, res record.OpResult) {
	t.Helper()
	if !errors.Is(res.Err, record.ErrFenced) {
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

func ids(jobs []record.JobRecord) []string {
	var out []string
	for i := range jobs {
		out = append(out, jobs[i].ID)
	}
	return out
}
