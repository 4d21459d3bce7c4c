package pgqueue

import (
	"fmt"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// Occupied returns what the tables hold already that an import would overwrite, such as "jobs"; empty = nothing. Notes of a
// host that has had no jobs don't count.
func Occupied(s *pgdb.Session) (what string, err error) {
	_, err = s.One([]any{&what}, `SELECT CASE
		WHEN EXISTS (SELECT FROM jobhost.job) THEN 'jobs'
		WHEN EXISTS (SELECT FROM jobhost.workflow) THEN 'workflows'
		WHEN EXISTS (SELECT FROM jobhost.kv) THEN 'keys'
		WHEN EXISTS (SELECT FROM jobhost.object) OR EXISTS (SELECT FROM jobhost.object_gone) THEN 'payloads'
		ELSE '' END`)
	return what, err
}

// FinishImport completes an import: the caller has copied the rows of another store into the tables, and here follow the sums
// and the numbers that are derived from them. next is the key of the next task there. It returns an error if rows are missing
// that others need.
func FinishImport(s *pgdb.Session, next int64) error {
	// These statements read whole tables, for which the writer's settings are wrong.
	if _, err := s.Exec(`SELECT set_config('enable_seqscan', 'on', true), set_config('enable_hashjoin', 'on', true),
		set_config('enable_mergejoin', 'on', true), set_config('plan_cache_mode', 'auto', true)`); err != nil {
		return err
	}
	for _, sql := range []string{
		"ANALYZE jobhost.job", "ANALYZE jobhost.task", "ANALYZE jobhost.result", "ANALYZE jobhost.failure", "ANALYZE jobhost.item",
		"ANALYZE jobhost.workflow", "ANALYZE jobhost.workflow_job", "ANALYZE jobhost.kv", "ANALYZE jobhost.label",
		"DELETE FROM jobhost.counter",
		"INSERT INTO jobhost.counter (worker, status, n) SELECT worker, status, count(*) FROM jobhost.task GROUP BY worker, status",
		"DELETE FROM jobhost.part",
		`INSERT INTO jobhost.part (job, open, succeeded, dead, cancelled)
			SELECT job, count(*) FILTER (WHERE status=0), count(*) FILTER (WHERE status=1), count(*) FILTER (WHERE status=2), count(*) FILTER (WHERE status=3)
			FROM jobhost.task WHERE tasks>1 GROUP BY job`,
		"SELECT setval(pg_get_serial_sequence('jobhost.failure', 'seq'), coalesce(max(seq), 1), max(seq) IS NOT NULL) FROM jobhost.failure",
		"SELECT setval(pg_get_serial_sequence('jobhost.log', 'seq'), coalesce(max(seq), 1), max(seq) IS NOT NULL) FROM jobhost.log",
	} {
		if _, err := s.Exec(sql); err != nil {
			return fmt.Errorf("%w: %s", err, sql)
		}
	}
	if _, err := s.Exec(`UPDATE jobhost.kv_worker w SET bytes=(
		SELECT coalesce(sum(octet_length(key)+size+$1::bigint), 0) FROM jobhost.kv WHERE kv.worker=w.worker)`, record.KVCost("", 0)); err != nil {
		return err
	}
	if _, err := s.Exec(`UPDATE jobhost.sequence SET next=greatest($1::bigint, 1, (SELECT max(seq)+1 FROM jobhost.task),
		(SELECT max(seq+greatest(tasks, 1)) FROM jobhost.job), (SELECT max(seq)+1 FROM jobhost.workflow)) WHERE id=1`, next); err != nil {
		return err
	}
	return checkComplete(s)
}

// checkComplete returns an error if rows are missing that others need, which checksums of rows don't show.
func checkComplete(s *pgdb.Session) error {
	for _, look := range []struct{ what, sql string }{
		{"the worker of job", "SELECT id FROM jobhost.job WHERE worker NOT IN (SELECT id FROM jobhost.worker)"},
		{"a number among those of workers, before", "SELECT name FROM jobhost.worker WHERE id>(SELECT count(*) FROM jobhost.worker)"},
		{"the job of the task with the key", "SELECT seq::text FROM jobhost.task t WHERE NOT EXISTS (SELECT FROM jobhost.job j WHERE j.seq=t.job)"},
		{"a task of job", `SELECT id FROM jobhost.job j LEFT JOIN (SELECT job, count(*) AS n FROM jobhost.task GROUP BY job) t ON t.job=j.seq
			WHERE coalesce(n, 0)<>greatest(j.tasks, 1)`},
		{"the payload of a task of job", `SELECT id FROM jobhost.job j WHERE options<>'' AND options LIKE '%"item_bytes":%'
			AND (SELECT count(*) FROM jobhost.item WHERE task>=j.seq AND task<j.seq+j.tasks)<>j.tasks`},
		{"the result of a task of job", `SELECT (SELECT id FROM jobhost.job j WHERE j.seq=t.job) FROM jobhost.task t
			LEFT JOIN jobhost.result r ON r.task=t.seq WHERE t.status=1 AND t.ref='' AND coalesce(octet_length(r.data), 0)<>t.result_size`},
		{"the definition of workflow", "SELECT id FROM jobhost.workflow w WHERE NOT EXISTS (SELECT FROM jobhost.definition d WHERE d.hash=w.definition)"},
		{"keys of worker", `SELECT name FROM jobhost.kv LEFT JOIN jobhost.worker ON worker.id=kv.worker
			WHERE NOT EXISTS (SELECT FROM jobhost.kv_worker w WHERE w.worker=kv.worker AND w.version>=kv.version)`},
	} {
		var name *string
		var names []string
		err := s.Each([]any{&name}, func() error {
			if name == nil {
				names = append(names, "?")
			} else {
				names = append(names, *name)
			}
			return nil
		}, look.sql+" LIMIT 5")
		if err != nil {
			return err
		}
		if len(names) > 0 {
			return &jobhost.Error{
				Code: jobhost.CodeDamaged, Message: fmt.Sprintf("%s %s is missing in the store", look.what, strings.Join(names, ", ")),
				Hint: "jobhost repair makes a store without what can't be used",
			}
		}
	}
	return nil
}
