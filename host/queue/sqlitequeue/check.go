package sqlitequeue

import (
	"fmt"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// rows are those of a table: what to read, and what is wrong with one.
type rows struct {
	sql   string
	check func(sqlitedb.Querier, *sqlitedb.Stmt) error
}

// checker returns the check of a schema with those tables.
func checker(tables func() []rows) func(sqlitedb.Querier, func(error)) error {
	return func(q sqlitedb.Querier, found func(error)) error {
		for _, t := range tables() {
			s := q.Stmt(t.sql)
			for s.Step() {
				if err := t.check(q, s); err != nil {
					found(err)
				}
			}
			if err := s.Done(); err != nil {
				return fmt.Errorf("check rows: %w", err)
			}
		}
		return nil
	}
}

func checkQueue(q sqlitedb.Querier, found func(error)) error {
	if err := checkJobs(q, found); err != nil {
		return err
	}
	return checker(queueRows)(q, found)
}

// checkJobs looks at jobs, which can be lost in two ways.
func checkJobs(q sqlitedb.Querier, found func(error)) error {
	for after := int64(0); ; {
		keys, err := numbers(q.Stmt("SELECT seq FROM job WHERE seq>? ORDER BY seq LIMIT 1000").Int(after))
		if err != nil {
			return fmt.Errorf("check jobs: %w", err)
		}
		if len(keys) == 0 {
			return nil
		}
		for _, key := range keys {
			job, err := scanJob(q.Stmt(selectJob+" WHERE seq=?").Int(key), true)
			switch {
			case sqlitedb.IsDamagedRow(err):
				found(err)
			case err != nil:
				return fmt.Errorf("check job %d: %w", key, err)
			case job != nil && job.Damage != nil:
				found(job.Damage)
			}
		}
		after = keys[len(keys)-1]
	}
}

// queueRows are those of the queue but jobs.
func queueRows() []rows {
	return []rows{
		{selectResult + " WHERE status=1", func(_ sqlitedb.Querier, s *sqlitedb.Stmt) error {
			_, err := scanResult(s)
			return err
		}},
		{"SELECT sum, task, data FROM item", func(q sqlitedb.Querier, s *sqlitedb.Stmt) error {
			if s.ColSum(0, contentSum("item", s.ColInt(1), s.ColBlob(2))) {
				return nil
			}
			return sqlitedb.Damaged("the payload of %s", taskOf(q, s.ColInt(1)))
		}},
		{"SELECT sum, task, record FROM failure", func(q sqlitedb.Querier, s *sqlitedb.Stmt) error {
			if s.ColSum(0, textSum("failure", s.ColInt(1), s.ColText(2))) {
				return nil
			}
			return sqlitedb.Damaged("an error record of %s", taskOf(q, s.ColInt(1)))
		}},
		{"SELECT sum, task, idx, attempt, dropped, text FROM log", func(q sqlitedb.Querier, s *sqlitedb.Stmt) error {
			sum := logSum(s.ColInt(1), s.ColInt(2), s.ColInt(3), s.ColInt(4), s.ColBlob(5))
			if s.ColSum(0, sum) {
				return nil
			}
			return sqlitedb.Damaged("the log of attempt %d of %s", s.ColInt(3), taskOf(q, s.ColInt(1)))
		}},
		{"SELECT sum, task, died_at, attempts, category, code, severity, message FROM dead", func(q sqlitedb.Querier, s *sqlitedb.Stmt) error {
			sum := deadSum(s.ColInt(1), s.ColInt(2), s.ColInt(3), s.ColText(4), s.ColText(5), s.ColText(6), s.ColText(7))
			if s.ColSum(0, sum) {
				return nil
			}
			return sqlitedb.Damaged("the dead letter of %s", taskOf(q, s.ColInt(1)))
		}},
		{"SELECT sum, name, text FROM note", func(_ sqlitedb.Querier, s *sqlitedb.Stmt) error {
			if s.ColSum(0, noteSum(s.ColText(1), s.ColText(2))) {
				return nil
			}
			return sqlitedb.Damaged("the note %q", s.ColText(1))
		}},
	}
}

// effectRows are keys and their values.
func effectRows() []rows {
	return []rows{
		{"SELECT sum, worker, key, version, expires, changed_at, value FROM kv", func(_ sqlitedb.Querier, s *sqlitedb.Stmt) error {
			key := s.ColText(2)
			if s.ColSum(0, kvSum(s.ColInt(1), key, s.ColInt(3), s.ColInt(4), s.ColInt(5), s.ColBlob(6))) {
				return nil
			}
			return damagedKey(key)
		}},
	}
}

// workflowRows are those of workflows.
func workflowRows() []rows {
	return []rows{
		{"SELECT sum, hash, text FROM definition", func(_ sqlitedb.Querier, s *sqlitedb.Stmt) error {
			if s.ColSum(0, definitionSum(s.ColText(1), s.ColBlob(2))) {
				return nil
			}
			return sqlitedb.Damaged("the definition %s", s.ColText(1))
		}},
		{selectWorkflow, func(_ sqlitedb.Querier, s *sqlitedb.Stmt) error {
			_, err := scanWorkflow(s, true)
			return err
		}},
		{"SELECT sum, workflow, slot, data FROM workflow_data", func(q sqlitedb.Querier, s *sqlitedb.Stmt) error {
			key, slot := s.ColInt(1), s.ColInt(2)
			if s.ColSum(0, dataSum(key, slot, s.ColBlob(3))) {
				return nil
			}
			return sqlitedb.Damaged("%s of workflow %s", slotName(int(slot)), workflowView{q}.idOf(record.Key(key)))
		}},
		{"SELECT failure_sum, workflow, step, failure FROM workflow_step", func(q sqlitedb.Querier, s *sqlitedb.Stmt) error {
			sum := stepSum(s.ColInt(1), s.ColInt(2), s.ColText(3))
			if s.ColSum(0, sum) {
				return nil
			}
			return sqlitedb.Damaged("the failure of step %d of workflow %s", s.ColInt(2), workflowView{q}.idOf(record.Key(s.ColInt(1))))
		}},
	}
}

// scheduleRows are those of schedules.
func scheduleRows() []rows {
	return []rows{
		{selectSchedules, func(_ sqlitedb.Querier, s *sqlitedb.Stmt) error {
			_, err := scanSchedule(s)
			return err
		}},
	}
}

// taskOf names a task for people.
func taskOf(q sqlitedb.Querier, key int64) string {
	s := q.Stmt("SELECT idx, (SELECT id FROM job WHERE job.seq=task.job) FROM task WHERE seq=?").Int(key)
	name := fmt.Sprintf("the task with the key %d", key)
	if s.Step() {
		name = fmt.Sprintf("task %d of job %s", s.ColInt(0), s.ColText(1))
	}
	_ = s.Done() // it is for an error that matters more
	return name
}
