package sqlitequeue_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/internal/sqlitedb/harm"
)

// statements are run in one transaction; they are a [sqlitedb.Change].
type statements struct {
	sql  []string
	done chan error
}

func (s *statements) Ops() int       { return 1 }
func (s *statements) Done(err error) { s.done <- err }

func (s *statements) Apply(tx *sqlitedb.Tx) error {
	for _, sql := range s.sql {
		if err := tx.Stmt(sql).Exec(); err != nil {
			return err
		}
	}
	return nil
}

func execute(tb testing.TB, db *sqlitedb.DB, sql ...string) {
	tb.Helper()
	s := &statements{sql: sql, done: make(chan error, 1)}
	db.Write(s)
	if err := <-s.done; err != nil {
		tb.Fatal(err)
	}
}

// content is one kind of what rows hold: put writes a row for each name that holds
// so many bytes of the name's letter, and get reads it.
type content struct {
	name string
	put  func(*shelf, string)
	get  func(*shelf, string) ([]byte, error)
	says string // what an error about the one of "a" has to name
}

// found is what a check of all rows names, where a reader gets a record that says so.
func (c *content) found() string {
	switch c.name {
	case "failure":
		return "an error record of task 0 of job a"
	case "dead letter":
		return "the dead letter of task 0 of job a"
	case "failure of a step":
		return "the failure of step 3 of workflow a"
	}
	return c.says
}

// shelf is a store under test.
type shelf struct {
	*testing.T
	store *sqlitequeue.Store
	keys  map[string]record.Key
}

func (s *shelf) commit(ops ...record.Op) []record.OpResult {
	s.Helper()
	res, err := commitAll(s.store, ops...)
	if err != nil {
		s.Fatal(err)
	}
	for i := range res {
		if res[i].Err != nil {
			s.Fatal(res[i].Err)
		}
	}
	return res
}

func (s *shelf) submit(job *record.JobSpec) record.Key {
	s.keys[job.ID] = s.commit(&record.Submit{Job: job})[0].Key
	return s.keys[job.ID]
}

// full is enough of a letter to fill several pages.
func full(name string) []byte { return bytes.Repeat([]byte(name[:1]), 20_000) }

func failureWith(message []byte) *jobhost.Failure {
	return &jobhost.Failure{Code: "x", Message: string(message), Category: jobhost.CategorySystem, Severity: jobhost.SeverityError}
}

// lost is the error that an error record is which says that it is damaged.
func lost(f *jobhost.Failure) ([]byte, error) {
	if f.Code == jobhost.FailDamaged {
		return nil, &jobhost.Error{Code: jobhost.CodeDamaged, Message: f.Message}
	}
	return []byte(f.Message), nil
}

func contents() []content {
	settled := func(s *shelf, name string, op *record.Settle) {
		op.Key = s.submit(newSpec(name, "w", 1))
		op.Attempt, op.Number = 1, 1
		s.commit(op)
	}
	return append([]content{
		{"payload", func(s *shelf, name string) {
			job := newSpec(name, "w", 1)
			job.Payload = full(name)
			s.submit(job)
		}, func(s *shelf, name string) ([]byte, error) {
			job, err := s.store.Job(s.Context(), name)
			return job.Payload, errors.Join(err, job.Damage)
		}, "the payload of job a"},
		{"payload to be run", func(s *shelf, name string) {
			job := newSpec(name, "w", 1)
			job.Payload = full(name)
			s.submit(job)
		}, func(s *shelf, name string) ([]byte, error) {
			bodies, err := s.store.Load(s.Context(), []record.Key{s.keys[name]})
			if err != nil || len(bodies) != 1 || bodies[0].Job.ID != name {
				s.Fatal(bodies, err)
			}
			return bodies[0].Job.Payload, bodies[0].Damage
		}, "the payload of job a"},
		{"options", func(s *shelf, name string) { // of a job in a list
			job := newSpec(name, "w", 1)
			job.Callback.URL = string(full(name))
			s.submit(job)
		}, func(s *shelf, name string) ([]byte, error) {
			jobs, err := s.store.Jobs(s.Context(), record.ListQuery{Keys: []record.Key{s.keys[name]}, Limit: 1})
			if err != nil {
				return nil, err
			}
			return []byte(jobs[0].Callback.URL), nil
		}, "job a"},
		{"payload of a task", func(s *shelf, name string) {
			job := newSpec(name, "w", 1)
			job.Tasks, job.Items, job.Payload = 2, [][]byte{[]byte("small"), full(name)}, nil
			s.submit(job)
		}, func(s *shelf, name string) ([]byte, error) {
			bodies, err := s.store.Load(s.Context(), []record.Key{s.keys[name] + 1, s.keys[name]})
			if err != nil || len(bodies) != 2 || string(bodies[1].Payload) != "small" || bodies[1].Damage != nil {
				s.Fatal(bodies, err)
			}
			return bodies[0].Payload, bodies[0].Damage
		}, "the payload of task 1 of job a"},
		{"result", func(s *shelf, name string) {
			settled(s, name, &record.Settle{Status: record.Succeeded, Result: full(name)})
		}, func(s *shelf, name string) ([]byte, error) { return s.store.Result(s.Context(), s.keys[name]) }, "the result of task 0 of job a"},
		{"results", func(s *shelf, name string) {
			settled(s, name, &record.Settle{Status: record.Succeeded, Result: full(name)})
		}, func(s *shelf, name string) ([]byte, error) {
			list, err := s.store.Results(s.Context(), s.keys[name], 0, 9, 1<<20)
			if err != nil {
				return nil, err
			}
			return list[0].Data, nil
		}, "the result of task 0 of job a"},
		{"failure", func(s *shelf, name string) {
			settled(s, name, &record.Settle{Status: record.Open, Failure: failureWith(full(name))})
		}, func(s *shelf, name string) ([]byte, error) {
			job, err := s.store.Job(s.Context(), name)
			if err != nil {
				return nil, err
			}
			return lost(&job.Failures[0])
		}, "the error record"},
		{"dead letter", func(s *shelf, name string) {
			settled(s, name, &record.Settle{Status: record.Dead, Failure: failureWith(full(name))})
		}, func(s *shelf, name string) ([]byte, error) {
			list, _, err := s.store.Dead(s.Context(), record.DeadQuery{Limit: 9})
			if err != nil {
				return nil, err
			}
			for _, l := range list {
				if l.Job == name {
					return lost(&jobhost.Failure{Code: l.Code, Message: l.Message})
				}
			}
			return nil, errors.New("there is no such letter")
		}, "the error record"},
		{"log", func(s *shelf, name string) {
			settled(s, name, &record.Settle{Status: record.Succeeded, Log: full(name)})
		}, func(s *shelf, name string) ([]byte, error) {
			logs, err := s.store.Logs(s.Context(), s.keys[name])
			if err != nil {
				return nil, err
			}
			return logs[0].Text, nil
		}, "the log of attempt 1 of task 0 of job a"},
		{"key", func(s *shelf, name string) {
			s.commit(&record.ChangeKV{Worker: "w", Changes: []record.KVChange{{Key: name, Value: full(name)}}, At: 1})
		}, func(s *shelf, name string) ([]byte, error) {
			e, err := s.store.KV(s.Context(), "w", name, 2)
			return e.Value, err
		}, `the value of key "a"`},
		{"note", func(s *shelf, name string) {
			s.commit(&record.Note{Name: name, Text: string(full(name))})
		}, func(s *shelf, name string) ([]byte, error) {
			notes, err := s.store.Notes(s.Context())
			return []byte(notes[name]), err
		}, `the note "a"`},
		{"schedule", func(s *shelf, name string) {
			s.commit(&record.Fire{State: record.ScheduleState{Name: name, Timing: string(full(name))}})
		}, func(s *shelf, name string) ([]byte, error) {
			list, err := s.store.Schedules(s.Context())
			if err != nil {
				return nil, err
			}
			return []byte(list[int(name[0]-'a')].Timing), nil
		}, "the state of schedule a"},
	}, workflowContents()...)
}

// starts is a transition that begins a workflow.
type starts struct {
	record     record.WorkflowRecord
	definition []byte
	data       []byte
	failure    *jobhost.Failure
}

func (t *starts) Apply(tx record.WorkflowTx, _ record.End) error {
	if _, err := tx.AddWorkflow(&t.record, t.definition); err != nil {
		return err
	}
	if t.data != nil {
		if err := tx.SetWorkflowData(t.record.Key, -1, t.data); err != nil {
			return err
		}
	}
	if t.failure == nil {
		return nil
	}
	return tx.SaveStep(t.record.Key, &record.StepRecord{Step: 3, Failure: t.failure})
}

func (*starts) Applied() {}

func workflowContents() []content {
	begin := func(s *shelf, name string, t *starts) {
		t.record.ID, t.record.Name = name, "flow"
		if t.definition == nil {
			t.definition = []byte("{}")
		}
		t.record.Definition = "hash of " + string(t.definition[:1])
		s.commit(&record.Advance{Transition: t})
		s.keys[name] = t.record.Key
	}
	view := func(s *shelf, f func(record.WorkflowView) ([]byte, error)) (data []byte, err error) {
		return data, s.store.ViewWorkflows(s.Context(), func(v record.WorkflowView) (err error) {
			data, err = f(v)
			return err
		})
	}
	return []content{
		{"workflow", func(s *shelf, name string) {
			begin(s, name, &starts{record: record.WorkflowRecord{Record: full(name)}})
		}, func(s *shelf, name string) ([]byte, error) {
			return view(s, func(v record.WorkflowView) ([]byte, error) {
				w, err := v.WorkflowByID(name)
				return w.Record, err
			})
		}, "workflow a"},
		{"input of a workflow", func(s *shelf, name string) {
			begin(s, name, &starts{data: full(name)})
		}, func(s *shelf, name string) ([]byte, error) {
			return view(s, func(v record.WorkflowView) ([]byte, error) { return v.WorkflowData(s.keys[name], -1) })
		}, "the input of workflow a"},
		{"definition", func(s *shelf, name string) {
			begin(s, name, &starts{definition: full(name)})
		}, func(s *shelf, name string) ([]byte, error) {
			return view(s, func(v record.WorkflowView) ([]byte, error) { return v.Definition("hash of " + name) })
		}, "the definition hash of a"},
		{"failure of a step", func(s *shelf, name string) {
			begin(s, name, &starts{failure: failureWith(full(name))})
		}, func(s *shelf, name string) ([]byte, error) {
			return view(s, func(v record.WorkflowView) ([]byte, error) {
				f, err := v.StepFailure(s.keys[name], 3)
				if err != nil {
					return nil, err
				}
				return lost(f)
			})
		}, "the error record"},
	}
}

// checkRows looks through a database that is closed for damaged rows.
func checkRows(t *testing.T, dir string, damaged bool, says string) {
	t.Helper()
	var found []error
	err := sqlitedb.CheckRows(t.Context(), filepath.Join(dir, sqlitedb.FileName), sqlitequeue.Schemas(), func(err error) { found = append(found, err) })
	if err != nil || (len(found) > 0) != damaged {
		t.Errorf("found %v, %v", found, err)
	}
	if err := errors.Join(found...); damaged && (jobhost.CodeOf(err) != jobhost.CodeDamaged || !strings.Contains(err.Error(), says)) {
		t.Errorf("found %v, which doesn't say %q", err, says)
	}
}

// Whatever a row holds, it is what was written, or an error says that it isn't. The
// checksums of pages see nothing of this.
func TestRowsOfDamagedPages(t *testing.T) {
	t.Parallel()
	for _, c := range contents() {
		for _, h := range harm.Harms() {
			t.Run(c.name+"/"+h.Name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				store, err := sqlitequeue.Open(sqlitequeue.Options{Dir: dir})
				if err != nil {
					t.Fatal(err)
				}
				s := &shelf{T: t, store: store, keys: map[string]record.Key{}}
				for _, name := range []string{"a", "b"} {
					c.put(s, name)
					if got, err := c.get(s, name); err != nil || !bytes.Equal(got, full(name)) {
						t.Fatalf("before: %s is %.20q… (%d), %v", name, got, len(got), err)
					}
				}
				if err := store.Close(); err != nil {
					t.Fatal(err)
				}
				checkRows(t, dir, false, "")
				h.Do(t, dir, 'a', 'b')
				checkRows(t, dir, true, c.found())
				s.store = open(t, sqlitequeue.Options{Dir: dir})
				got, err := c.get(s, "a")
				if jobhost.CodeOf(err) != jobhost.CodeDamaged || !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %.20q… (%d), %v", got, len(got), err)
				}
				if c.name == "note" || c.name == "schedule" { // which are all read at once
					return
				}
				if got, err := c.get(s, "b"); err != nil || !bytes.Equal(got, full("b")) {
					t.Errorf("the other one is %.20q… (%d), %v", got, len(got), err)
				}
			})
		}
	}
}

// A flipped bit in the payload of one task keeps no other from being loaded.
func TestLoadAroundDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, err := sqlitequeue.Open(sqlitequeue.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	s := &shelf{T: t, store: store, keys: map[string]record.Key{}}
	for _, name := range []string{"b", "a", "c"} {
		job := newSpec(name, "w", 1)
		job.Payload = full(name)
		s.submit(job)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	harm.Flip().Do(t, dir, 'a', 'b')
	s.store = open(t, sqlitequeue.Options{Dir: dir})
	bodies, err := s.store.Load(t.Context(), []record.Key{s.keys["b"], s.keys["a"], s.keys["c"]})
	if err != nil || len(bodies) != 3 {
		t.Fatal(bodies, err)
	}
	for i, name := range []string{"b", "a", "c"} {
		b := bodies[i]
		if b.Job.ID != name || b.Job.Worker != "w" || (b.Damage != nil) != (name == "a") || name != "a" && !bytes.Equal(b.Job.Payload, full(name)) {
			t.Errorf("body of %s: %+v, %v", name, b.Job, b.Damage)
		}
	}
	job, err := s.store.Job(t.Context(), "a")
	if err != nil || jobhost.CodeOf(job.Damage) != jobhost.CodeDamaged || len(job.Tasks) != 1 {
		t.Errorf("the job itself: %+v, %v", job, err)
	}
}

// A result that should be there and isn't is damage, not an empty result.
func TestMissingRows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, err := sqlitedb.Open(sqlitedb.Options{Dir: dir, Schemas: sqlitequeue.Schemas()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	store, err := sqlitequeue.New(db)
	if err != nil {
		t.Fatal(err)
	}
	s := &shelf{T: t, store: store, keys: map[string]record.Key{}}
	key := s.submit(newSpec("a", "w", 1))
	s.commit(&record.Settle{Key: key, Attempt: 1, Number: 1, Status: record.Succeeded, Result: []byte("result")})
	s.submit(withItems("b", 2, 10))
	execute(t, db, "DELETE FROM result", "DELETE FROM item WHERE task=(SELECT max(seq) FROM task)")
	if _, err := store.Result(context.Background(), key); jobhost.CodeOf(err) != jobhost.CodeDamaged {
		t.Errorf("a missing result: %v", err)
	}
	bodies, err := store.Load(t.Context(), []record.Key{s.keys["b"], s.keys["b"] + 1})
	if err != nil || len(bodies) != 2 || bodies[0].Damage != nil || bodies[1].Damage == nil {
		t.Errorf("a missing payload: %+v, %v", bodies, err)
	}
}
