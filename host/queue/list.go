package queue

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/order"
	"github.com/jobhost/jobhost/host/queue/record"
)

// Jobs lists jobs, newest first. Terminal states are found by the store's
// indexes, the others in memory, so a page costs about the same however many
// jobs there are.
func (q *Queue) Jobs(ctx context.Context, filter jobhost.Filter) (jobhost.Page, error) {
	query, err := listQuery(filter)
	if err != nil {
		return jobhost.Page{}, err
	}
	jobs, keys, err := (&listing{q, &filter}).list(ctx, query, query.Limit+1) // one more shows whether there is another page
	if err != nil {
		return jobhost.Page{}, fmt.Errorf("list jobs: %w", err)
	}
	page := jobhost.Page{Jobs: jobs}
	if len(jobs) > query.Limit {
		page.Jobs = jobs[:query.Limit]
		page.Next = strconv.FormatInt(int64(keys[query.Limit-1]), 36)
	}
	return page, nil
}

// listing is a call of [Queue.Jobs].
type listing struct {
	q      *Queue
	filter *jobhost.Filter
}

// list returns up to want jobs with their keys. Jobs that were chosen in memory
// may turn out to be of another time than is asked for, or to have moved on
// since; then it looks further down.
func (x *listing) list(ctx context.Context, query record.ListQuery, want int) (jobs []jobhost.Job, keys []record.Key, err error) {
	jobs = make([]jobhost.Job, 0, min(want, 64))
	for {
		part := query
		part.Limit = want - len(jobs)
		if err := x.selectState(ctx, &part); err != nil {
			return nil, nil, err
		}
		records, err := x.q.store.Jobs(ctx, part)
		if err != nil {
			return nil, nil, err
		}
		for _, stored := range records {
			job := x.q.describe(stored)
			in := func(task jobhost.Task) bool { return task.State == x.filter.State }
			if x.filter.State == 0 || slices.ContainsFunc(job.Tasks, in) {
				job.Tasks = nil
				jobs, keys = append(jobs, job), append(keys, stored.Key)
			}
		}
		switch {
		case len(jobs) >= want:
			return jobs, keys, nil
		case part.Keys != nil && len(part.Keys) >= part.Limit:
			query.Below = part.Keys[len(part.Keys)-1]
		case part.Keys == nil && len(records) >= part.Limit:
			query.Below = records[len(records)-1].Key
		default:
			return jobs, keys, nil
		}
	}
}

func listQuery(filter jobhost.Filter) (record.ListQuery, error) {
	query := record.ListQuery{
		Worker: filter.Worker,
		Parent: filter.Parent,
		Labels: filter.Labels,
		After:  record.MillisOf(filter.After),
		Before: record.MillisOf(filter.Before),
		Limit:  filter.Limit,
	}
	switch {
	case filter.Limit < 0 || filter.Limit > jobhost.MaxPage:
		return query, &jobhost.Error{
			Code:    jobhost.CodeInvalid,
			Field:   "limit",
			Message: fmt.Sprintf("limit %d is not between 1 and %d", filter.Limit, jobhost.MaxPage),
		}
	case len(filter.Labels) > jobhost.MaxLabels:
		return query, &jobhost.Error{
			Code:    jobhost.CodeInvalid,
			Field:   "label",
			Message: fmt.Sprintf("%d labels are more than %d", len(filter.Labels), jobhost.MaxLabels),
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
		query.Below = record.Key(below)
	}
	return query, nil
}

var statusOf = map[jobhost.State]record.Status{
	jobhost.Succeeded: record.Succeeded,
	jobhost.Dead:      record.Dead,
	jobhost.Cancelled: record.Cancelled,
}

// selectState narrows the query to a state.
func (x *listing) selectState(ctx context.Context, query *record.ListQuery) error {
	switch {
	case x.filter.State == 0:
		return nil
	case len(x.filter.Labels) > 0 && !x.filter.State.Ended():
		// Their index is in the store; what is open in it is looked at one by one.
		open := record.Open
		query.Status = &open
		return nil
	case x.filter.State.Ended():
		status := statusOf[x.filter.State]
		query.Status = &status
		return nil
	case x.filter.State == jobhost.Held:
		return x.selectHeld(ctx, query)
	}
	newest := newestKeys{limit: query.Limit}
	for name, l := range x.q.lanes.all() {
		switch {
		case x.filter.Worker != "" && x.filter.Worker != name:
		case x.filter.State == jobhost.Running:
			l.jobsRunning(query.Below, &newest)
		default:
			l.jobsIn(x.filter.State, query.Below, &newest)
		}
	}
	query.Keys = newest.sorted()
	return nil
}

// newestKeys collects the highest keys, each once.
type newestKeys struct {
	limit int
	keys  []record.Key
	floor record.Key // keys below it are not wanted any more
}

func (n *newestKeys) add(key record.Key) {
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
func (n *newestKeys) sorted() []record.Key {
	slices.Sort(n.keys)
	keys := slices.Compact(n.keys)
	slices.Reverse(keys)
	if keys == nil {
		return []record.Key{}
	}
	return keys[:min(len(keys), n.limit)]
}

// selectHeld narrows the query to the jobs that are held: those of workers that
// are loaded are found in memory, those of others are all that are open.
func (x *listing) selectHeld(ctx context.Context, query *record.ListQuery) error {
	newest := newestKeys{limit: query.Limit}
	for name, l := range x.q.lanes.all() {
		if query.Worker == "" || query.Worker == name {
			l.jobsIn(jobhost.Held, query.Below, &newest)
		}
	}
	if err := x.addParked(ctx, query, &newest); err != nil {
		return err
	}
	query.Keys = newest.sorted()
	return nil
}

// addParked adds the open jobs of workers that are not loaded.
func (x *listing) addParked(ctx context.Context, query *record.ListQuery, newest *newestKeys) error {
	counts, err := x.q.store.Counts(ctx)
	if err != nil {
		return err
	}
	maps.DeleteFunc(counts, func(worker string, c record.StatusCounts) bool {
		l := x.q.lanes.of(worker)
		return c[record.Open] == 0 || l != nil && !l.parked.Load() || query.Worker != "" && query.Worker != worker
	})
	for worker := range counts {
		open := record.Open
		part := *query
		part.Keys, part.Worker, part.Status = nil, worker, &open
		part.Limit += x.q.lanes.of(worker).stillRunning() // those are open, and not held
		records, err := x.q.store.Jobs(ctx, part)
		if err != nil {
			return err
		}
		for _, stored := range records {
			if slices.ContainsFunc(x.q.describe(stored).Tasks, isHeld) {
				newest.add(stored.Key)
			}
		}
	}
	return nil
}

func isHeld(t jobhost.Task) bool { return t.State == jobhost.Held }

// jobsIn collects the jobs with a task in a state that is not terminal, below
// a key if that is not 0. The lock is held to take a view, and for moments while
// that is read: a million entries take longer than a task may wait.
func (l *lane) jobsIn(state jobhost.State, below record.Key, newest *newestKeys) {
	some := make([]order.Entry, 0, liveBatch)
	for _, view := range l.views(state) {
		for e := range view {
			job := e.Job()
			later := state == jobhost.Scheduled || state == jobhost.Retrying
			if below != 0 && job >= below || job < newest.floor || later && e.Tried != (state == jobhost.Retrying) {
				continue
			}
			if some = append(some, e); len(some) == liveBatch {
				l.addLive(some, newest)
				some = some[:0]
			}
		}
	}
	l.addLive(some, newest)
}

// liveBatch is how many entries are looked at under one hold of the lock.
const liveBatch = 256

// addLive adds the jobs of those entries that are not gone.
func (l *lane) addLive(some []order.Entry, newest *newestKeys) {
	l.mu.Lock()
	some = slices.DeleteFunc(some, l.order.Gone)
	l.mu.Unlock()
	for _, e := range some {
		newest.add(e.Job())
	}
}

// views returns the entries of a state as they are now, and others that it may
// be mixed with.
func (l *lane) views(state jobhost.State) []iter.Seq[order.Entry] {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advanceLocked()
	if l.parked.Load() {
		return nil // they are held
	}
	return l.order.Views(state, l.holdLocked() != notHeld)
}

// jobsRunning collects the jobs with a task that runs; those are as many as
// there are slots and settlements under way.
func (l *lane) jobsRunning(below record.Key, newest *newestKeys) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, lease := range l.running {
		if job := lease.entry.Job(); below == 0 || job < below {
			newest.add(job)
		}
	}
}
