package pgqueue_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// submitMany adds jobs with one task each, in one commit.
func submitMany(t *testing.T, s *store, n int, id string, mod ...func(*record.JobSpec)) []record.Key {
	t.Helper()
	ops := make([]record.Op, n)
	for i := range ops {
		ops[i] = &record.Submit{Job: newSpec(fmt.Sprintf("%s-%04d", id, i), "w", mod...)}
	}
	keys := make([]record.Key, n)
	for i, res := range must(t, s, ops...) {
		keys[i] = res.Key
	}
	return keys
}

// most is how many round trips a commit may take, whatever the number of its operations.
const most = 25

// TestRoundsOfLives: submits take one round trip, and settlements take one.
func TestRoundsOfLives(t *testing.T) {
	t.Parallel()
	s, proxy := openCounted(t)
	// The statements are prepared in the first round, and the lease is renewed beside some.
	submits, settlements := int64(1<<40), int64(1<<40)
	for round := 0; round < 20 && max(submits, settlements) > 1; round++ {
		var keys []record.Key
		submits = min(submits, proxy.RoundTrips(func() { keys = submitMany(t, s, 50, fmt.Sprint("job ", round)) }))
		ops := make([]record.Op, len(keys))
		for i, key := range keys {
			ops[i] = &record.Settle{Key: key, Status: record.Succeeded, EndedAt: 2, Attempt: 1, Result: []byte("done")}
		}
		settlements = min(settlements, proxy.RoundTrips(func() { must(t, s, ops...) }))
	}
	if submits > 1 || settlements > 1 {
		t.Errorf("submits took %d round trips, and settlements %d", submits, settlements)
	}
}

// TestRoundsAroundDirect: operations after one that runs statements read their rows in sets.
func TestRoundsAroundDirect(t *testing.T) {
	t.Parallel()
	s, proxy := openCounted(t)
	for round, limit := range []int64{1 << 40, most} { // the statements are prepared in the first one
		var ops []record.Op
		keys := submitMany(t, s, 200, fmt.Sprint("job ", round))
		submitMany(t, s, 1, fmt.Sprint("cancelled ", round))
		for i, key := range keys {
			if i == 100 {
				ops = append(ops, &record.Cancel{ID: fmt.Sprintf("cancelled %d-0000", round), At: 2})
			}
			ops = append(ops, &record.Settle{Key: key, Status: record.Succeeded, EndedAt: 2, Attempt: 1},
				&record.Submit{Job: newSpec(fmt.Sprintf("next %d-%d", round, i), "w")},
				&record.ChangeKV{Worker: "w", At: 2, Changes: []record.KVChange{{Key: fmt.Sprint(i), Kind: record.KVAdd, Delta: 1}}})
		}
		if trips := proxy.RoundTrips(func() { must(t, s, ops...) }); trips > limit {
			t.Errorf("%d operations took %d round trips", len(ops), trips)
		}
	}
	if got := rows(t, s, "SELECT status, count(*) FROM jobhost.task GROUP BY 1 ORDER BY 1"); !slices.Equal(got, []string{"0 400", "1 400", "3 2"}) {
		t.Errorf("tasks by status: %v", got)
	}
	if got := rows(t, s, "SELECT DISTINCT convert_from(value, 'UTF8') FROM jobhost.kv"); !slices.Equal(got, []string{"2"}) {
		t.Errorf("values of keys: %v", got)
	}
}

// TestRoundsOfDeaths: a worker at its limit of dead tasks loses a job with each death; those of a commit are removed
// together.
func TestRoundsOfDeaths(t *testing.T) {
	t.Parallel()
	s, proxy := openCounted(t)
	const bound, deaths = 50, 200
	parent := submit(t, s, newSpec("parent", "x"))
	child := func(job *record.JobSpec) { job.Parent = &record.Parent{ID: "parent", Key: parent, Depth: 1} }
	keys := submitMany(t, s, 4*deaths, "job", child)
	die := func(keys []record.Key) (evicted []string, trips int64) {
		ops := make([]record.Op, len(keys))
		for i, key := range keys {
			ops[i] = dying(key, "x", bound)
		}
		trips = proxy.RoundTrips(func() {
			for _, res := range must(t, s, ops...) {
				evicted = append(evicted, res.Evicted...)
			}
		})
		return evicted, trips
	}
	die(keys[deaths : 2*deaths])
	evicted, trips := die(keys[2*deaths : 3*deaths])
	if len(evicted) != deaths || evicted[0] != "job-0350" || evicted[deaths-1] != "job-0549" {
		t.Errorf("%d were evicted: %v", len(evicted), evicted)
	}
	if trips > most {
		t.Errorf("%d deaths in their order took %d round trips", deaths, trips)
	}
	late := slices.Clone(keys[:deaths]) // each goes when the next one dies
	slices.Reverse(late)
	evicted, trips = die(late)
	if len(evicted) != deaths || evicted[1] != "job-0199" || evicted[deaths-1] != "job-0001" {
		t.Errorf("%d were evicted: %v", len(evicted), evicted)
	}
	if trips > most {
		t.Errorf("%d deaths of earlier jobs took %d round trips", deaths, trips)
	}
	want := fmt.Sprint(bound)
	for _, sql := range []string{
		"SELECT count(*) FROM jobhost.task WHERE status=2", "SELECT count(*) FROM jobhost.dead", "SELECT count(*) FROM jobhost.failure",
		"SELECT sum(n)::bigint FROM jobhost.counter WHERE status=2", "SELECT count(*)-200 FROM jobhost.child", "SELECT count(*)-201 FROM jobhost.job",
	} {
		if got := rows(t, s, sql); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %v, want %s", sql, got, want)
		}
	}
	if family, err := s.Family(t.Context(), parent); err != nil || family.Children != deaths+bound {
		t.Errorf("the parent has %d children, %v", family.Children, err)
	}
}

// TestRoundsOfStuckDeaths: deaths of a job that is open evict nothing, and cost no statements of their own.
func TestRoundsOfStuckDeaths(t *testing.T) {
	t.Parallel()
	s, proxy := openCounted(t)
	const tasks = 400
	key := submit(t, s, newSpec("many", "w", func(job *record.JobSpec) { job.Tasks = tasks }))
	die := func(from, to int) int64 {
		ops := make([]record.Op, 0, to-from)
		for i := from; i < to; i++ {
			ops = append(ops, dying(key+record.Key(i), "x", 10))
		}
		return proxy.RoundTrips(func() {
			for _, res := range must(t, s, ops...) {
				if len(res.Evicted) > 0 {
					t.Errorf("evicted %v", res.Evicted)
				}
			}
		})
	}
	die(0, 20)
	if trips := die(20, tasks); trips > most {
		t.Errorf("%d deaths took %d round trips", tasks-20, trips)
	}
	if got := must(t, s, dying(submit(t, s, newSpec("next", "w")), "x", 10))[0]; !slices.Equal(got.Evicted, []string{"many"}) || got.Removed != tasks {
		t.Errorf("evicted %v, %d tasks", got.Evicted, got.Removed)
	}
}

// TestEvictedInOneCommit: later operations of a commit don't see what it has evicted.
func TestEvictedInOneCommit(t *testing.T) {
	t.Parallel()
	s, _ := openCounted(t)
	unique := func(job *record.JobSpec) { job.UniqueKey, job.Labels, job.Ref = "u", map[string]string{"l": "v"}, "" }
	first := submit(t, s, newSpec("first", "w", unique))
	must(t, s, dying(first, "x", 1))
	second := submit(t, s, newSpec("second", "w"))
	third := submit(t, s, newSpec("third", "w"))
	res := must(t, s, dying(second, "x", 1),
		&record.Submit{Job: newSpec("unique", "w", unique)}, // its key is free
		&record.Submit{Job: newSpec("first", "w")},          // and so is the id
		dying(third, "x", 1),
		&record.Submit{Job: newSpec("second", "w")})
	if !slices.Equal(res[0].Evicted, []string{"first"}) || !slices.Equal(res[3].Evicted, []string{"second"}) {
		t.Errorf("evicted %v, %v", res[0].Evicted, res[3].Evicted)
	}
	for _, i := range []int{1, 2, 4} {
		if res[i].Existing {
			t.Errorf("operation %d: the job is there", i)
		}
	}
	again := must(t, s, &record.Submit{Job: newSpec("other", "w", unique)})[0]
	if !again.Existing || again.ID != "unique" {
		t.Errorf("a unique key that is taken: %+v", again)
	}
	got := rows(t, s, "SELECT id, status FROM jobhost.job JOIN jobhost.task ON task.job=job.seq ORDER BY id")
	if want := []string{"first 0", "second 0", "third 2", "unique 0"}; !slices.Equal(got, want) {
		t.Errorf("jobs %v, want %v", got, want)
	}
	if _, err := commit(s, &record.Cancel{ID: "first", At: 3}, &record.Delete{ID: "first"}); err != nil {
		t.Error(err)
	}
	if _, err := s.Job(t.Context(), "first"); jobhost.CodeOf(err) != jobhost.CodeNotFound {
		t.Errorf("first: %v", err)
	}
}
