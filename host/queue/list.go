package queue

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/jobhost/jobhost"
)

// Jobs lists jobs, newest first. Terminal states are found by the store's
// indexes, the others in memory, so a page costs about the same however many
// jobs there are.
func (q *Queue) Jobs(ctx context.Context, filter jobhost.Filter) (jobhost.Page, error) {
	query, err := listQuery(filter)
	if err != nil {
		return jobhost.Page{}, err
	}
	limit := query.Limit
	query.Limit++ // one more tells whether there is another page
	records, err := q.list(ctx, filter, query)
	if err != nil {
		return jobhost.Page{}, fmt.Errorf("list jobs: %w", err)
	}
	page := jobhost.Page{Jobs: make([]jobhost.Job, 0, min(limit, len(records)))}
	if len(records) > limit {
		records = records[:limit]
		page.Next = strconv.FormatInt(int64(records[limit-1].Key), 36)
	}
	for _, record := range records {
		job := q.describe(record)
		job.Tasks = nil
		page.Jobs = append(page.Jobs, job)
	}
	return page, nil
}

// list asks the store for a page. Jobs that were chosen in memory may turn out
// to be of another time than is wanted; then it looks further down.
func (q *Queue) list(ctx context.Context, filter jobhost.Filter, query ListQuery) ([]JobRecord, error) {
	var records []JobRecord
	want := query.Limit
	for {
		query.Limit = want - len(records)
		part := query
		if err := q.selectState(ctx, filter, &part); err != nil {
			return nil, err
		}
		found, err := q.store.Jobs(ctx, part)
		if err != nil {
			return nil, err
		}
		records = append(records, found...)
		if len(records) >= want || len(part.Keys) < query.Limit {
			return records, nil
		}
		query.Below = part.Keys[len(part.Keys)-1]
	}
}

func listQuery(filter jobhost.Filter) (ListQuery, error) {
	query := ListQuery{
		Worker: filter.Worker,
		After:  MillisOf(filter.After),
		Before: MillisOf(filter.Before),
		Limit:  filter.Limit,
	}
	switch {
	case filter.Limit < 0 || filter.Limit > jobhost.MaxPage:
		return query, &jobhost.Error{
			Code:    jobhost.CodeInvalid,
			Field:   "limit",
			Message: fmt.Sprintf("limit %d is not between 1 and %d", filter.Limit, jobhost.MaxPage),
		}
	case filter.Limit == 0:
		query.Limit = 50
	}
	if filter.Cursor != "" {
		below, err := strconv.ParseInt(filter.Cursor, 36, 64)
		if err != nil || below <= 0 {
			return query, &jobhost.Error{
				Code:    jobhost.CodeInvalid,
				Field:   "cursor",
				Message: "the cursor is not one that a list returned",
				Hint:    "use the next of the page before, or leave it out to begin with the newest job",
			}
		}
		query.Below = Key(below)
	}
	return query, nil
}

var statusOf = map[jobhost.State]Status{
	jobhost.Succeeded: Succeeded,
	jobhost.Dead:      Dead,
	jobhost.Cancelled: Cancelled,
}

// selectState narrows the query to a state.
func (q *Queue) selectState(ctx context.Context, filter jobhost.Filter, query *ListQuery) error {
	switch {
	case filter.State == 0:
		return nil
	case filter.State.Ended():
		status := statusOf[filter.State]
		query.Status = &status
		return nil
	case filter.State == jobhost.Held:
		return q.selectHeld(ctx, query)
	}
	newest := newestKeys{limit: query.Limit}
	for name, l := range q.lanes {
		if filter.Worker == "" || filter.Worker == name {
			l.jobsIn(filter.State, query.Below, &newest)
		}
	}
	query.Keys = newest.sorted()
	return nil
}

// newestKeys collects the highest keys, each once.
type newestKeys struct {
	limit int
	keys  []Key
	floor Key // keys below it are not wanted any more
}

func (n *newestKeys) add(key Key) {
	if key < n.floor {
		return
	}
	n.keys = append(n.keys, key)
	if len(n.keys) >= 8*n.limit {
		n.keys = n.sorted()
		if len(n.keys) == n.limit {
			n.floor = n.keys[n.limit-1]
		}
	}
}

// sorted returns up to limit keys, highest first; never nil.
func (n *newestKeys) sorted() []Key {
	slices.Sort(n.keys)
	keys := slices.Compact(n.keys)
	slices.Reverse(keys)
	if keys == nil {
		return []Key{}
	}
	return keys[:min(len(keys), n.limit)]
}

// selectHeld narrows the query to the open jobs of workers that are not here.
func (q *Queue) selectHeld(ctx context.Context, query *ListQuery) error {
	counts, err := q.store.Counts(ctx)
	if err != nil {
		return err
	}
	maps.DeleteFunc(counts, func(worker string, c StatusCounts) bool {
		return c[Open] == 0 || q.lanes[worker] != nil || query.Worker != "" && query.Worker != worker
	})
	query.Keys = []Key{}
	for worker := range counts {
		open := Open
		part := *query
		part.Keys, part.Worker, part.Status = nil, worker, &open
		records, err := q.store.Jobs(ctx, part)
		if err != nil {
			return err
		}
		for _, record := range records {
			query.Keys = append(query.Keys, record.Key)
		}
	}
	slices.Sort(query.Keys)
	slices.Reverse(query.Keys)
	return nil
}

// jobsIn collects the jobs with a task in a state that is not terminal, below
// a key if that is not 0.
func (l *lane) jobsIn(state jobhost.State, below Key, newest *newestKeys) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advanceLocked()
	add := func(e entry) {
		if _, gone := l.gone[goneEntry{e.key, e.token}]; !gone && (below == 0 || e.job() < below) {
			newest.add(e.job())
		}
	}
	switch state {
	case jobhost.Running:
		for _, lease := range l.running {
			add(lease.entry)
		}
	case jobhost.Ready:
		for i := range l.levels {
			for e := range l.levels[i].all() {
				add(e)
			}
		}
	case jobhost.Scheduled, jobhost.Retrying:
		for _, e := range l.delayed {
			if e.tried == (state == jobhost.Retrying) {
				add(e)
			}
		}
	}
}
