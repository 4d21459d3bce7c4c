package sqlitequeue

import (
	"fmt"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// mender returns what runs statements in order.
func mender(statements ...string) func(sqlitedb.Querier) error {
	return func(q sqlitedb.Querier) error {
		for _, sql := range statements {
			if err := q.Stmt(sql).Exec(); err != nil {
				return fmt.Errorf("%w: %s", err, sql)
			}
		}
		return nil
	}
}

// mendQueue puts right what follows from jobs and tasks of which a repair has left some
// out. Tasks whose job is gone can't run, and what belongs to a task that is gone can't
// be reached. The numbers of workers have no holes, and keys are never given out again.
var mendQueue = mender(
	"DELETE FROM task WHERE job NOT IN (SELECT seq FROM job)",
	"DELETE FROM item WHERE task NOT IN (SELECT seq FROM task)",
	"DELETE FROM result WHERE task NOT IN (SELECT seq FROM task)",
	"DELETE FROM failure WHERE task NOT IN (SELECT seq FROM task)",
	"DELETE FROM log WHERE task NOT IN (SELECT seq FROM task)",
	"DELETE FROM dead WHERE task NOT IN (SELECT seq FROM task)",
	`WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id+1 FROM n
			WHERE id < (SELECT max(id) FROM (SELECT max(worker) AS id FROM job UNION ALL SELECT max(id) FROM worker)))
		INSERT OR IGNORE INTO worker(id, name) SELECT id, 'repaired-' || id FROM n WHERE id NOT IN (SELECT id FROM worker)
			AND EXISTS(SELECT 1 FROM job UNION ALL SELECT 1 FROM worker)`,
	"DELETE FROM counter",
	"INSERT INTO counter(worker, status, n) SELECT worker, status, count(*) FROM task GROUP BY 1, 2",
	"DELETE FROM part",
	`INSERT INTO part(job, open, succeeded, dead, cancelled) SELECT job, sum(status=0), sum(status=1), sum(status=2), sum(status=3)
		FROM task WHERE tasks>1 GROUP BY 1`,
	"DELETE FROM span",
	"INSERT INTO span(block, low, high, due) SELECT seq>>10, min(created_at), max(created_at), 1 FROM job GROUP BY 1",
	`INSERT OR IGNORE INTO label(name, value, job)
		SELECT each.key, each.value, job.seq FROM job, json_each(job.labels) AS each WHERE json_valid(job.labels)`,
	"INSERT OR IGNORE INTO object(ref) SELECT ref FROM job WHERE ref IS NOT NULL UNION SELECT ref FROM task WHERE ref IS NOT NULL",
	"INSERT OR IGNORE INTO sequence(id, next) VALUES(1, 1)",
	`UPDATE sequence SET next=max(next, (SELECT coalesce(max(seq), 0) FROM job)+1, (SELECT coalesce(max(seq), 0) FROM task)+1)`,
)

// mendEffects adds up what the keys of a worker cost.
var mendEffects = mender(
	fmt.Sprintf(`INSERT INTO kv_worker(worker, bytes, version)
		SELECT worker, sum(length(CAST(key AS BLOB))+size+%d), max(version) FROM kv WHERE true GROUP BY 1
		ON CONFLICT DO UPDATE SET bytes=excluded.bytes, version=max(version, excluded.version)`, record.KVCost("", 0)),
	"UPDATE kv_worker SET bytes=0 WHERE worker NOT IN (SELECT worker FROM kv)",
)

// mendWorkflows counts the uses of definitions, and keeps the keys of workflows apart
// from those of tasks.
var mendWorkflows = mender(
	"DELETE FROM definition_use",
	"INSERT INTO definition_use(definition, n) SELECT definition, count(*) FROM workflow GROUP BY 1",
	"UPDATE sequence SET next=max(next, (SELECT coalesce(max(seq), 0) FROM workflow)+1)",
)
