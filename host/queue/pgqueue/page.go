package pgqueue

import (
	"fmt"
	"math"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/host/queue/record"
)

// A page is found by a recursive query that walks down the keys of jobs. Each step asks every index that knows of
// something wanted (a label, a parent, the tasks of a worker in a status) for its highest job below a bound. If they
// agree that is a job of the page, and if not all jobs above the lowest of them are skipped: a step reads an entry of
// each index, however rare the jobs are that have all that is asked for.
//
// Left to itself the planner would rather walk down the primary key and drop what is not wanted, since it believes
// that a match is never far. For rare ones that reads the whole table. So bounds and orders are written in such a way
// that only the right index gives the order, whatever the statistics say, and are there or not.
const (
	// pageStreams are the workers and statuses whose tasks are wanted, of those that have any.
	pageStreams = `stream AS MATERIALIZED (
	SELECT row_number() OVER () AS i, counter.worker, status FROM jobhost.tally counter JOIN jobhost.worker ON worker.id=counter.worker
	WHERE n>0 AND (@worker::text='' OR name=@worker) AND (@status::smallint<0 OR status=@status)),
`
	// pageStart begins below the end of a job: @below may lie within one, and streams of tasks read up to it. till is
	// that bound, n is the number of jobs that were found, and tops are the highest jobs of the streams.
	pageStart = `page(job, till, step, n, tops) AS (
	SELECT 0::bigint, coalesce((SELECT seq+tasks FROM jobhost.job WHERE seq<@below ORDER BY seq DESC LIMIT 1), 0), 0::bigint, 0::bigint, '{}'::bigint[]
	UNION ALL
	SELECT CASE WHEN hit THEN low ELSE 0 END, CASE WHEN low=high THEN low ELSE low+tasks END, step+1, n+hit::int, part.tops
	FROM page`
	// pageBlocks goes on with the next block of keys that may have jobs of the times asked for. Without a time, all do.
	pageBlocks = `
	CROSS JOIN LATERAL (
		SELECT CASE WHEN block=(page.till-1)>>10 THEN page.till
			ELSE (SELECT seq+tasks FROM jobhost.job WHERE seq<((block+1)<<10) ORDER BY seq DESC LIMIT 1) END AS till, block<<10 AS first
		FROM jobhost.span WHERE block<=(page.till-1)>>10 AND high>=@after AND low<@before ORDER BY block DESC LIMIT 1) bound`
	pageAnyTime = `
	CROSS JOIN LATERAL (SELECT page.till AS till) bound`
	// pageTasks finds the highest job of all streams. Only those are asked whose last answer is not below the bound.
	pageTasks = `
	CROSS JOIN LATERAL (
		SELECT array_agg(top ORDER BY i) AS tops, max(top) AS top FROM (
			SELECT i, CASE WHEN page.tops[i]<bound.till THEN page.tops[i] ELSE coalesce((
				SELECT job FROM jobhost.task
				WHERE worker=stream.worker AND (status, seq)<(stream.status, bound.till) AND (status, seq)>=(stream.status, 0)
				ORDER BY status DESC, seq DESC LIMIT 1), 0) END AS top
			FROM stream OFFSET 0) s) part`
	pageNoTasks = `
	CROSS JOIN LATERAL (SELECT '{}'::bigint[] AS tops) part`
	// pageEnd says what the indexes agree on. A job's own time decides, since a block's times are only bounds.
	pageEnd = `
	CROSS JOIN LATERAL (SELECT min(coalesce(top, 0)) AS low, max(top) AS high FROM (%s) t(top)) found
	CROSS JOIN LATERAL (
		SELECT tasks, low=high AND created_at>=@after AND created_at<@before AS hit FROM jobhost.job WHERE seq=low OFFSET 0) job
	WHERE n<@limit AND step<@steps)`
	pageOfKeys = `WITH page(job) AS (SELECT unnest(@keys::bigint[]))`
)

// What pageEnd compares: the highest job below the bound of everything asked for.
const (
	topOfTasks  = `SELECT part.top`
	topOfLabels = `SELECT (SELECT job FROM jobhost.label WHERE name=l.name AND (value, job)<(l.value, bound.till) AND (value, job)>=(l.value, 0)
			ORDER BY value DESC, job DESC LIMIT 1) FROM unnest(@names::text[], @values::text[]) AS l(name, value)`
	topOfChildren = `SELECT (SELECT job FROM jobhost.child WHERE (parent, job)<(@parent, bound.till) AND (parent, job)>=(@parent, 0)
			ORDER BY parent DESC, job DESC LIMIT 1)`
	topOfAll = `SELECT (SELECT seq FROM jobhost.job WHERE seq<bound.till ORDER BY seq DESC LIMIT 1)`
	// topOfTimes looks at the times of a block's jobs itself, and goes on below the block if none is right.
	topOfTimes = `SELECT coalesce(
			(SELECT seq FROM jobhost.job WHERE seq<bound.till AND seq>=bound.first AND created_at>=@after AND created_at<@before ORDER BY seq DESC LIMIT 1),
			(SELECT seq FROM jobhost.job WHERE seq<bound.first ORDER BY seq DESC LIMIT 1))`
)

// pageSQL returns the beginning of a statement, which selects the keys of a page.
func pageSQL(q *record.ListQuery) (string, pgx.NamedArgs) {
	args := pgx.NamedArgs{
		"worker": q.Worker, "status": int16(-1), "parent": q.Parent,
		"steps": int64(math.MaxInt64), "after": int64(math.MinInt64), "before": int64(math.MaxInt64), "below": int64(math.MaxInt64), "limit": q.Limit,
	}
	streams, times, tasks := "", pageAnyTime, pageNoTasks
	var tops []string
	if q.Status != nil {
		args["status"] = int16(*q.Status)
	}
	if q.Below != 0 {
		args["below"] = q.Below
	}
	if q.After != 0 {
		times, args["after"] = pageBlocks, q.After
	}
	if q.Before != 0 {
		times, args["before"] = pageBlocks, q.Before
	}
	if q.Worker != "" || q.Status != nil {
		streams, tasks, tops = pageStreams, pageTasks, append(tops, topOfTasks)
	}
	if q.Parent != "" {
		tops = append(tops, topOfChildren)
	}
	if len(q.Labels) > 0 {
		args["names"], args["values"] = pairs(q.Labels)
		tops = append(tops, topOfLabels)
	}
	switch {
	case tops != nil:
	case q.After != 0 || q.Before != 0:
		tops = append(tops, topOfTimes)
	default:
		tops = append(tops, topOfAll)
	}
	return "WITH RECURSIVE " + streams + pageStart + times + tasks + fmt.Sprintf(pageEnd, strings.Join(tops, " UNION ALL ")), args
}

func pairs(labels map[string]string) (names, values []string) {
	for name, value := range labels {
		names, values = append(names, name), append(values, value)
	}
	return names, values
}
