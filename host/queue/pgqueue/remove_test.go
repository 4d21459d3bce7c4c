package pgqueue_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
	"github.com/jobhost/jobhost/state/payload"
)

// own returns a reference of a job.
func own(id, what string) string { return payload.Name("s", id+what) + "100:rest" }

// finish leaves a job that has ended, with something in each table that jobs have rows in.
func finish(t *testing.T, s *store, id, worker string) record.Key {
	t.Helper()
	must(t, s, &record.NoteStates{ID: id})
	key := submit(t, s, newSpec(id, worker, func(j *record.JobSpec) {
		j.Tasks, j.Items, j.Ref = 3, [][]byte{{1}, {2}, {3}}, own(id, "payload")
		j.Labels, j.UniqueKey = map[string]string{"a": "1", "b": ""}, id
		j.Parent = &record.Parent{ID: "parent", Key: 1, Depth: 1}
	}))
	must(t, s,
		&record.Settle{Key: key, Status: record.Succeeded, Result: []byte("result"), Log: []byte("line\n"), EndedAt: 2, ExpiresAt: 100},
		&record.Settle{Key: key + 1, Status: record.Succeeded, ResultRef: own(id, "result"), ResultSize: 100, EndedAt: 2, ExpiresAt: 100},
		dying(key+2, "x", 0))
	return key
}

// belongings says of which tables a job has how many rows.
func belongings(t *testing.T, s *store, key record.Key, id string) []string {
	t.Helper()
	return rows(t, s, `SELECT name, count(*) FROM (
		SELECT 'job' AS name FROM jobhost.job WHERE seq=$1
		UNION ALL SELECT 'part' FROM jobhost.part WHERE job=$1 UNION ALL SELECT 'child' FROM jobhost.child WHERE job=$1
		UNION ALL SELECT 'label' FROM jobhost.label WHERE job=$1 UNION ALL SELECT 'uniq' FROM jobhost.uniq WHERE job=$1
		UNION ALL SELECT 'task' FROM jobhost.task WHERE seq BETWEEN $1 AND $1+2
		UNION ALL SELECT 'result' FROM jobhost.result WHERE task BETWEEN $1 AND $1+2
		UNION ALL SELECT 'failure' FROM jobhost.failure WHERE task BETWEEN $1 AND $1+2
		UNION ALL SELECT 'log' FROM jobhost.log WHERE task BETWEEN $1 AND $1+2
		UNION ALL SELECT 'item' FROM jobhost.item WHERE task BETWEEN $1 AND $1+2
		UNION ALL SELECT 'dead' FROM jobhost.dead WHERE task BETWEEN $1 AND $1+2
		UNION ALL SELECT 'object' FROM jobhost.object WHERE ref=ANY($3)
		UNION ALL SELECT 'object_gone' FROM jobhost.object_gone WHERE ref=ANY($3)
		UNION ALL SELECT 'states_noted' FROM jobhost.states_noted WHERE id=$2
		UNION ALL SELECT 'states_gone' FROM jobhost.states_gone WHERE id=$2
	) AS t GROUP BY name ORDER BY name`, int64(key), id, []string{own(id, "payload"), own(id, "result")})
}

// Rows of a job that was finished, and those that are left when it was removed.
var (
	allOfJob = []string{
		"child 1", "dead 1", "failure 1", "item 3", "job 1", "label 2", "log 1", "object 2", "part 1", "result 1", "states_noted 1", "task 3", "uniq 1",
	}
	leftOfJob = []string{"object_gone 2", "states_gone 1"}
)

// removals are the ways in which a job of worker w is removed.
var removals = map[string]func(t *testing.T, s *store) record.Op{
	"delete": func(*testing.T, *store) record.Op { return &record.Delete{ID: "a"} },
	"tidy":   func(*testing.T, *store) record.Op { return &record.Tidy{At: 100, Limit: 3} },
	"evict": func(t *testing.T, s *store) record.Op {
		t.Helper()
		return dying(submit(t, s, newSpec("later", "w")), "x", 1)
	},
}

// notes is a companion that notes of which jobs it has heard.
type notes struct {
	mu      sync.Mutex // protects ids, refuses
	ids     []string
	refuses error
}

func (*notes) Any() bool { return true }

func (n *notes) Removing(_ *pgdb.Tx, ids []string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ids = append(n.ids, ids...)
	return n.refuses
}

func (n *notes) set(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ids, n.refuses = nil, err
}

// TestRemoveAll: whatever removes a job, all that belongs to it goes with it, and nothing of its neighbours does; if a
// companion refuses, nothing happens.
func TestRemoveAll(t *testing.T) {
	t.Parallel()
	for name, remove := range removals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := &notes{}
			s := open(t, postgres.Shared(t).Schema(t), n)
			key := finish(t, s, "a", "w")
			neighbour := finish(t, s, "b", "x")
			op := remove(t, s)
			refused := errors.New("not now")
			n.set(refused)
			if _, err := commit(s, op); !errors.Is(err, refused) {
				t.Fatalf("a companion has refused, and the commit returned %v", err)
			}
			if got := belongings(t, s, key, "a"); !slices.Equal(got, allOfJob) {
				t.Errorf("a job that stays has %v", got)
			}
			n.set(nil)
			res := must(t, s, op)[0]
			if !res.Gone {
				t.Error("what has gone was not reported")
			}
			if got := belongings(t, s, key, "a"); !slices.Equal(got, leftOfJob) {
				t.Errorf("a job that was removed has left %v", got)
			}
			if got := belongings(t, s, neighbour, "b"); !slices.Equal(got, allOfJob) {
				t.Errorf("another job has %v", got)
			}
			if !slices.Equal(n.ids, []string{"a"}) {
				t.Errorf("the companion has heard of %v", n.ids)
			}
			counted := rows(t, s, `SELECT count(*) FROM (SELECT worker, status, n FROM jobhost.tally WHERE n<>0
				EXCEPT SELECT worker, status, count(*) FROM jobhost.task GROUP BY worker, status) AS t`)
			if counted[0] != "0" {
				t.Error("the counters differ from the tasks")
			}
		})
	}
}

// TestStepsStay: a job that is a step of a workflow is not deleted, nor evicted, whatever text its options hold; an
// eviction gets past any number of them.
func TestStepsStay(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Shared(t).Schema(t))
	const steps = 100
	ops := make([]record.Op, steps)
	for i := range ops {
		ops[i] = &record.Submit{Job: newSpec(fmt.Sprint("step", i), "w", func(j *record.JobSpec) {
			j.ConcurrencyKey, j.Origin = "nul \x00", &record.Origin{Workflow: 7, ID: "wf-a", Step: "s", Mark: "s0.1"}
		})}
	}
	for i, res := range must(t, s, ops...) {
		ops[i] = dying(res.Key, "x", 0)
	}
	must(t, s, ops...)
	res, err := commit(s, &record.Delete{ID: "step0"})
	if err != nil {
		t.Fatal(err)
	}
	if jobhost.CodeOf(res[0].Err) != jobhost.CodeConflict {
		t.Errorf("a step was deleted: %v", res[0].Err)
	}
	var evicted []string
	for _, id := range []string{"1", "2", "3", "4"} { // three looks end among the steps
		evicted = append(evicted, must(t, s, dying(submit(t, s, newSpec(id, "w")), "x", 2))[0].Evicted...)
	}
	if !slices.Equal(evicted, []string{"1", "2", "3"}) {
		t.Errorf("evicted %v", evicted)
	}
	if n := rows(t, s, "SELECT count(*) FROM jobhost.job WHERE options<>''"); n[0] != "100" {
		t.Errorf("%s steps are left", n[0])
	}
}
