package pgqueue

import (
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// A search with several conditions alternates between two ways of going down the keys. The steps of the recursive query (see
// page.go) skip long stretches without a match, but each costs as much as a hundred entries read in a row, and if the jobs of
// two indexes alternate there is a step for each job. So after some steps the next stretch of keys is read as a whole.
const (
	searchSteps   = 200
	searchStretch = 50_000
)

// parts returns the number of conditions that have an index.
func parts(q *record.ListQuery) int {
	n := len(q.Labels)
	if q.Parent != "" {
		n++
	}
	if q.Worker != "" || q.Status != nil {
		n++
	}
	return n
}

// bySearch returns the jobs of a query with several conditions.
func bySearch(r *pgdb.Session, q *record.ListQuery) ([]record.JobRecord, error) {
	var keys []int64
	rest := *q
	for {
		till, err := walk(r, &rest, &keys)
		if err != nil {
			return nil, err
		}
		if till == 0 || len(keys) == q.Limit {
			break
		}
		first := max(0, till-searchStretch)
		rest.Limit = q.Limit - len(keys)
		if err := sweep(r, &rest, first, till, &keys); err != nil {
			return nil, err
		}
		if first == 0 || len(keys) == q.Limit {
			break
		}
		rest.Limit, rest.Below = q.Limit-len(keys), record.Key(first)
	}
	return readJobs(r, pageOfKeys+selectPage, pgx.NamedArgs{"keys": keys})
}

// walk adds the keys that searchSteps steps find. It returns where to continue; 0 = there are no more.
func walk(r *pgdb.Session, q *record.ListQuery, keys *[]int64) (till int64, err error) {
	sql, args := pageSQL(q)
	args["steps"] = int64(searchSteps)
	var job, bound, step int64
	err = r.Each([]any{&job, &bound, &step}, func() error {
		if job > 0 {
			*keys = append(*keys, job)
		}
		if step == searchSteps {
			till = bound
		}
		return nil
	}, sql+" SELECT job, till, step FROM page ORDER BY step", args)
	return till, err
}

// The jobs of a stretch that meet one condition, each job once.
const (
	sweepTasks = `SELECT DISTINCT job FROM jobhost.task JOIN stream ON stream.worker=task.worker AND stream.status=task.status
		WHERE seq>=@first AND seq<@till AND job>=@first`
	sweepLabels = `SELECT job FROM jobhost.label JOIN unnest(@names::text[], @values::text[]) AS l(name, value) ON label.name=l.name AND label.value=l.value
		WHERE job>=@first AND job<@till`
	sweepChildren = `SELECT job FROM jobhost.child WHERE parent=@parent AND job>=@first AND job<@till`
	sweepEnd      = `) t GROUP BY job HAVING count(*)=@parts) t
	WHERE EXISTS(SELECT FROM jobhost.job WHERE seq=t.job AND created_at>=@after AND created_at<@before) ORDER BY job DESC LIMIT @limit`
)

// sweep adds the matching keys of a stretch, highest first.
func sweep(r *pgdb.Session, q *record.ListQuery, first, till int64, keys *[]int64) error {
	_, args := pageSQL(q)
	args["first"], args["till"], args["parts"] = first, till, parts(q)
	var from []string
	with := ""
	if q.Worker != "" || q.Status != nil {
		with, from = "WITH "+strings.TrimSuffix(strings.TrimSpace(pageStreams), ",")+" ", append(from, sweepTasks)
	}
	if len(q.Labels) > 0 {
		from = append(from, sweepLabels)
	}
	if q.Parent != "" {
		from = append(from, sweepChildren)
	}
	var job int64
	return r.Each([]any{&job}, func() error {
		*keys = append(*keys, job)
		return nil
	}, with+"SELECT job FROM (SELECT job FROM ("+strings.Join(from, " UNION ALL ")+sweepEnd, args)
}
