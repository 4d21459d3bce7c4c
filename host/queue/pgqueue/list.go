package pgqueue

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// Jobs implements [record.Reader]. One statement finds and reads the jobs of a page, another one their tasks.
func (s *Store) Jobs(ctx context.Context, q record.ListQuery) (jobs []record.JobRecord, err error) {
	if q.Limit <= 0 || !storable(q.Worker) || !storable(q.Parent) || !storableLabels(q.Labels) {
		return nil, nil
	}
	err = s.db.Read(ctx, func(r *pgdb.Session) error {
		jobs = nil
		switch {
		case q.Keys != nil:
			jobs, err = byKeys(r, &q)
		case parts(&q) > 1:
			jobs, err = bySearch(r, &q)
		default:
			sql, args := pageSQL(&q)
			jobs, err = readJobs(r, sql+selectPage, args)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	return jobs, nil
}

// byKeys reads the jobs of a query that has their keys. They are few, and most meet its other conditions.
func byKeys(r *pgdb.Session, q *record.ListQuery) (jobs []record.JobRecord, err error) {
	keys := q.Keys
	for len(keys) > 0 && q.Below != 0 && keys[0] >= q.Below {
		keys = keys[1:]
	}
	for len(keys) > 0 && len(jobs) < q.Limit {
		n := min(len(keys), q.Limit)
		found, err := readJobs(r, pageOfKeys+selectPage, pgx.NamedArgs{"keys": keys[:n]})
		if err != nil {
			return nil, err
		}
		for i := range found {
			if len(jobs) < q.Limit && matches(&found[i], q) {
				jobs = append(jobs, found[i])
			}
		}
		keys = keys[n:]
	}
	return jobs, nil
}

// matches reports whether a job meets the conditions of a query, but for those on its key.
func matches(job *record.JobRecord, q *record.ListQuery) bool {
	switch {
	case q.Worker != "" && q.Worker != job.Worker,
		q.After != 0 && job.CreatedAt < q.After,
		q.Before != 0 && job.CreatedAt >= q.Before,
		q.Parent != "" && (job.Parent == nil || job.Parent.ID != q.Parent):
		return false
	}
	for name, value := range q.Labels {
		if got, ok := job.Labels[name]; !ok || got != value {
			return false
		}
	}
	if q.Status == nil {
		return true
	}
	for i := range job.Tasks {
		if job.Tasks[i].Status == *q.Status {
			return true
		}
	}
	return false
}

// readJobs returns the jobs that a statement with jobColumns and parentColumns selects, with their tasks.
func readJobs(r *pgdb.Session, sql string, args pgx.NamedArgs) (jobs []record.JobRecord, err error) {
	var row storedJob
	var tasks []record.Key
	at := make(map[record.Key]int)
	err = r.Each(row.into(row.intoParent()...), func() error {
		job, err := row.record()
		if err != nil {
			return err
		}
		at[job.Key] = len(jobs)
		jobs = append(jobs, *job)
		for i := range job.JobSpec.Tasks {
			tasks = append(tasks, job.Key+record.Key(i))
		}
		return nil
	}, sql, args)
	if err != nil || len(jobs) == 0 {
		return nil, err
	}
	var task storedTask
	err = r.Each(task.into(), func() error {
		task.addTo(&jobs[at[task.job]])
		return nil
	}, tasksByKey, tasks)
	for i := range jobs {
		jobs[i].EndedAt = endOf(jobs[i].Tasks)
	}
	return jobs, err
}

const (
	// selectPage reads the jobs of a common table expression "page". OFFSET 0 makes the planner look them up one by one.
	// Otherwise it would join whole tables when it overestimates the page.
	selectPage = `
SELECT job.* FROM page CROSS JOIN LATERAL (SELECT ` + jobColumns + `, ` + parentColumns + ` FROM ` + jobTables + ` WHERE seq=page.job OFFSET 0) job
WHERE page.job>0 ORDER BY seq DESC`
	// tasksByKey lists every key, since the planner can't estimate ranges of keys.
	tasksByKey = `SELECT ` + shownColumns + ` FROM jobhost.task WHERE seq=ANY($1::bigint[]) ORDER BY seq`
)

func storableLabels(labels map[string]string) bool {
	for name, value := range labels {
		if !storable(name) || !storable(value) {
			return false
		}
	}
	return true
}
