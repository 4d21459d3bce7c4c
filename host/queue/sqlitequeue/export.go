package sqlitequeue

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// Exports returns the tables of the queue as package pgqueue has them, but for sums that follow from other rows. Rows are
// checked while they are read; what has no checksum is checked by [sqlitedb.Source] as far as its keys go.
func Exports() []sqlitedb.Export {
	return slices.Concat(jobExports(), taskExports(), noteExports(), effectExports(), workflowExports())
}

// jobExports are jobs, and what finds them.
func jobExports() []sqlitedb.Export {
	return []sqlitedb.Export{
		{Table: "worker", Columns: sqlitedb.Columns("id, name text")},
		{
			Table: "job",
			Columns: sqlitedb.Columns("seq, id text, worker, tasks, priority, max_attempts, timeout_ns, created_at, ready_at, digest blob, " +
				"entry text, content_type text, labels text, options text, ref text, payload blob"),
			Check: checkJobRow,
		},
		{Table: "label", Columns: sqlitedb.Columns("name text, value text, job")},
		{Table: "uniq", Columns: sqlitedb.Columns("worker, name text, job, until")},
		{Table: "object", Columns: sqlitedb.Columns("ref text")},
		{Table: "object_gone", Columns: sqlitedb.Columns("ref text")},
		{Table: "states_noted", Columns: sqlitedb.Columns("id text")},
		{Table: "states_gone", Columns: sqlitedb.Columns("id text")},
		{Table: "span", Columns: sqlitedb.Columns("block, low, high, due")},
	}
}

// checkJobRow looks at a job with its payload, and leaves its digest as record.JobSpec.SetDigest reads it.
func checkJobRow(_ sqlitedb.Querier, row []any, _ func(int64) bool) (string, error) {
	var (
		key, worker = number(row, 0), number(row, 2)
		digest      = blob(row, 9)
		sums        jobSums
	)
	job := &record.JobSpec{
		ID: text(row, 1), Tasks: int(number(row, 3)), Priority: jobhost.Priority(number(row, 4)), MaxAttempts: int(number(row, 5)),
		Timeout: time.Duration(number(row, 6)), CreatedAt: record.Millis(number(row, 7)), ReadyAt: record.Millis(number(row, 8)),
		Entry: text(row, 10), ContentType: text(row, 11), Ref: text(row, 14), Payload: blob(row, 15),
	}
	head, content := sums.check(copy(sums[:], digest), key, worker, job, texts{text(row, 12), text(row, 13)}, true)
	switch {
	case head != nil:
		return "job " + job.ID, nil //nolint:nilerr // damage is an answer
	case content != nil:
		return "the payload of job " + job.ID, nil //nolint:nilerr // damage is an answer
	case len(digest) == len(job.DigestBefore):
		row[9] = record.StoredBefore(digest)
	default:
		row[9] = digest[:len(job.Digest)]
	}
	return "", nil
}

// taskExports are tasks, and what they leave behind.
func taskExports() []sqlitedb.Export {
	return []sqlitedb.Export{
		{
			Table: "task",
			Columns: sqlitedb.Columns("seq, job, idx, tasks, worker, level, status, attempt, token, ready_at, started_at, ended_at, result_size, " +
				"fuel, lane_group, deadline, retention_ms, expires_at, suspect bool, ref text"),
			Check: func(q sqlitedb.Querier, row []any, _ func(int64) bool) (string, error) {
				if isTask(number(row, 0), number(row, 1), number(row, 2)) {
					return "", nil
				}
				return taskOf(q, number(row, 0)), nil
			},
		},
		{
			Table: "item", Columns: sqlitedb.Columns("task, data blob"), Sum: "sum",
			Check: contentCheck("item", "the payload"),
		},
		{
			Table: "result", Columns: sqlitedb.Columns("task, data blob"), Sum: "sum",
			Check: contentCheck("result", "the result"),
		},
		{
			Table: "failure", Columns: sqlitedb.Columns("seq, task, record text"), Sum: "sum",
			Check: func(q sqlitedb.Querier, row []any, whole func(int64) bool) (string, error) {
				if whole(textSum("failure", number(row, 1), text(row, 2))) {
					return "", nil
				}
				return "an error record of " + taskOf(q, number(row, 1)), nil
			},
		},
		{
			Table: "log", Columns: sqlitedb.Columns("seq, task, idx, attempt, dropped, text blob"), Sum: "sum",
			Check: func(q sqlitedb.Querier, row []any, whole func(int64) bool) (string, error) {
				if whole(logSum(number(row, 1), number(row, 2), number(row, 3), number(row, 4), blob(row, 5))) {
					return "", nil
				}
				return fmt.Sprintf("the log of attempt %d of %s", row[3], taskOf(q, number(row, 1))), nil
			},
		},
		{
			Table: "dead", Columns: sqlitedb.Columns("task, worker, died_at, revived_at, attempts, category text, code text, severity text, message text"),
			Shown: []string{"category", "code", "severity", "message"}, Sum: "sum",
			Check: func(q sqlitedb.Querier, row []any, whole func(int64) bool) (string, error) {
				if whole(deadSum(number(row, 0), number(row, 2), number(row, 4), text(row, 5), text(row, 6), text(row, 7), text(row, 8))) {
					return "", nil
				}
				return "the dead letter of " + taskOf(q, number(row, 0)), nil
			},
		},
		{Table: "death", Columns: sqlitedb.Columns("hour, worker, category text, code text, n")},
	}
}

// contentCheck looks at rows with the bytes of a task, which are what.
func contentCheck(table, what string) func(sqlitedb.Querier, []any, func(int64) bool) (string, error) {
	return func(q sqlitedb.Querier, row []any, whole func(int64) bool) (string, error) {
		if whole(contentSum(table, number(row, 0), blob(row, 1))) {
			return "", nil
		}
		return what + " of " + taskOf(q, number(row, 0)), nil
	}
}

// noteExports are what the host knows of itself.
func noteExports() []sqlitedb.Export {
	return []sqlitedb.Export{
		{
			Table: "note", Columns: sqlitedb.Columns("name text, text text"), Sum: "sum",
			Check: func(_ sqlitedb.Querier, row []any, whole func(int64) bool) (string, error) {
				if whole(noteSum(text(row, 0), text(row, 1))) {
					return "", nil
				}
				return fmt.Sprintf("the note %q", row[0]), nil
			},
		},
		{
			Table: "schedule",
			Columns: sqlitedb.Columns("name text, version, timing text, last, fired, last_job text, paused_at, gone_at, " +
				"open text, waiting text"),
			Sum: "sum",
			Check: func(_ sqlitedb.Querier, row []any, whole func(int64) bool) (string, error) {
				state := &record.ScheduleState{
					Name: text(row, 0), Timing: text(row, 2), Last: record.Millis(number(row, 3)), Fired: record.Millis(number(row, 4)),
					LastJob: text(row, 5), PausedAt: record.Millis(number(row, 6)), GoneAt: record.Millis(number(row, 7)),
				}
				if whole(scheduleSum(state, number(row, 1), text(row, 8), text(row, 9))) {
					return "", nil
				}
				return "the state of schedule " + state.Name, nil
			},
		},
	}
}

// effectExports are keys, and who submitted a job.
func effectExports() []sqlitedb.Export {
	return []sqlitedb.Export{
		{
			Table: "kv", Columns: sqlitedb.Columns("worker, key text, version, expires, changed_at, size, value blob"), Sum: "sum",
			Check: func(_ sqlitedb.Querier, row []any, whole func(int64) bool) (string, error) {
				if whole(kvSum(number(row, 0), text(row, 1), number(row, 2), number(row, 3), number(row, 4), blob(row, 6))) {
					return "", nil
				}
				return fmt.Sprintf("the value of key %q", row[1]), nil
			},
		},
		{Table: "kv_worker", Columns: sqlitedb.Columns("worker, bytes, version")},
		{Table: "child", Columns: sqlitedb.Columns("job, parent text, parent_key, task, depth")},
	}
}

// workflowExports are workflows, whose definitions go by their hash.
func workflowExports() []sqlitedb.Export {
	definition := sqlitedb.Columns("hash text, n, text blob")
	definition[1].SQL = "(SELECT coalesce(max(n), 0) FROM definition_use WHERE definition=definition.id)"
	workflow := sqlitedb.Columns("seq, id text, name text, definition text, status, digest blob, depth, parent, parent_id text, parent_step text, " +
		"parent_mark text, labels text, started_at, retention_ms, ended_at, expires_at, ending text, record blob")
	workflow[3].SQL = "(SELECT hash FROM definition WHERE definition.id=workflow.definition)"
	step := sqlitedb.Columns("workflow, step, status text, number, fallback, reason text, tasks, started_at, ended_at, failure text")
	return []sqlitedb.Export{
		{
			Table: "definition", Columns: definition, Sum: "sum",
			Check: func(_ sqlitedb.Querier, row []any, whole func(int64) bool) (string, error) {
				if whole(definitionSum(text(row, 0), blob(row, 2))) {
					return "", nil
				}
				return "the definition " + text(row, 0), nil
			},
		},
		{Table: "workflow", Columns: workflow, Sum: "sum", Check: checkWorkflowRow},
		{
			Table: "workflow_data", Columns: sqlitedb.Columns("workflow, slot, data blob"), Sum: "sum",
			Check: func(q sqlitedb.Querier, row []any, whole func(int64) bool) (string, error) {
				key, slot := number(row, 0), number(row, 1)
				if whole(dataSum(key, slot, blob(row, 2))) {
					return "", nil
				}
				return fmt.Sprintf("%s of workflow %s", slotName(int(slot)), workflowView{q}.idOf(record.Key(key))), nil
			},
		},
		{
			Table: "workflow_step", Columns: step, Sum: "failure_sum",
			Check: func(q sqlitedb.Querier, row []any, whole func(int64) bool) (string, error) {
				key := number(row, 0)
				if whole(stepSum(key, number(row, 1), text(row, 9))) {
					return "", nil
				}
				return fmt.Sprintf("the failure of step %d of workflow %s", row[1], workflowView{q}.idOf(record.Key(key))), nil
			},
		},
		{Table: "workflow_job", Columns: sqlitedb.Columns("workflow, job")},
	}
}

func checkWorkflowRow(_ sqlitedb.Querier, row []any, whole func(int64) bool) (string, error) {
	w := &record.WorkflowRecord{
		Key: record.Key(number(row, 0)), ID: text(row, 1), Name: text(row, 2), Definition: text(row, 3), Depth: int(number(row, 6)),
		Parent: record.Key(number(row, 7)), ParentID: text(row, 8), ParentStep: text(row, 9), ParentMark: text(row, 10),
		StartedAt: record.Millis(number(row, 12)), Retention: millis(number(row, 13)), Record: blob(row, 17),
	}
	copy(w.Digest[:], blob(row, 5))
	if labels := text(row, 11); labels != "" && json.Unmarshal([]byte(labels), &w.Labels) != nil {
		return "workflow " + w.ID, nil //nolint:nilerr // damage is an answer
	}
	if !whole(workflowSum(w, text(row, 16))) {
		return "workflow " + w.ID, nil
	}
	return "", nil
}

// NextKey is the key of the next task, which is in a table of one row.
func NextKey(q sqlitedb.Querier) (key int64, err error) {
	s := q.Stmt("SELECT next FROM sequence WHERE id=1")
	if s.Step() {
		key = s.ColInt(0)
	}
	return key, s.Done()
}

// EachRef calls fn with each reference to a payload or result outside of the database that is in use.
func EachRef(q sqlitedb.Querier, fn func(ref string) error) error {
	s := q.Stmt("SELECT ref FROM object")
	for s.Step() {
		if err := fn(s.ColText(0)); err != nil {
			return errors.Join(err, s.Done())
		}
	}
	return s.Done()
}

// The values of a row, whose kinds are those of its columns.

func number(row []any, i int) int64 { return row[i].(int64) }

func text(row []any, i int) string { return row[i].(string) }

func blob(row []any, i int) []byte { return row[i].([]byte) }
