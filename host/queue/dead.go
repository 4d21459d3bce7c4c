package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// Dead lists dead letters, the latest first.
func (q *Queue) Dead(ctx context.Context, filter jobhost.DeadFilter) (jobhost.DeadPage, error) {
	query, err := deadQuery(&filter)
	if err != nil {
		return jobhost.DeadPage{}, err
	}
	records, next, err := q.store.Dead(ctx, query)
	if err != nil {
		return jobhost.DeadPage{}, err
	}
	page := jobhost.DeadPage{Letters: make([]jobhost.DeadLetter, len(records)), Next: cursorAt(next)}
	for i := range records {
		page.Letters[i] = letterOf(&records[i])
	}
	return page, nil
}

func deadQuery(f *jobhost.DeadFilter) (record.DeadQuery, error) {
	query := record.DeadQuery{
		Worker: f.Worker, Code: f.Code, Category: f.Category, After: record.MillisOf(f.After), Before: record.MillisOf(f.Before),
		Labels: f.Labels, Text: f.Text, Retried: f.Retried, Limit: cmp.Or(f.Limit, 50),
	}
	err := f.Check()
	if err == nil && f.Cursor != "" {
		query.Below, err = parseDeadPlace(f.Cursor)
	}
	return query, err
}

// cursorAt writes a place as the cursor of a list; the zero place is none.
func cursorAt(p record.DeadPlace) string {
	if p == (record.DeadPlace{}) {
		return ""
	}
	return strconv.FormatInt(int64(p.DiedAt), 36) + "." + strconv.FormatInt(int64(p.Key), 36)
}

func parseDeadPlace(cursor string) (record.DeadPlace, error) {
	at, key, _ := strings.Cut(cursor, ".")
	diedAt, err1 := strconv.ParseInt(at, 36, 64)
	k, err2 := strconv.ParseInt(key, 36, 64)
	if err := errors.Join(err1, err2); err != nil || k <= 0 {
		return record.DeadPlace{}, &jobhost.Error{
			Code:    jobhost.CodeInvalid,
			Field:   "cursor",
			Message: "the cursor is not one that a list of dead letters returned",
			Hint:    "use the next of the page before, or leave it out to begin with the latest one",
		}
	}
	return record.DeadPlace{DiedAt: record.Millis(diedAt), Key: record.Key(k)}, nil
}

func letterOf(r *record.DeadRecord) jobhost.DeadLetter {
	return jobhost.DeadLetter{
		Job: r.Job, Task: r.Index, Worker: r.Worker, Labels: r.Labels,
		Code: r.Code, Category: r.Category, Severity: r.Severity, Message: r.Message, Attempts: r.Attempts,
		CreatedAt: r.CreatedAt.Time(), DiedAt: r.DiedAt.Time(), Retried: r.RevivedAt != 0, RetriedAt: timeOrNil(r.RevivedAt),
	}
}

// Bounds of a summary.
const (
	summaryTop   = 20 // names of each kind
	summaryHours = 72 // more than so many are shown by days
	summaryDays  = 90
)

// DeadSummary counts deaths by what they were.
func (q *Queue) DeadSummary(ctx context.Context, query jobhost.DeadQuery) (jobhost.DeadSummary, error) {
	if query.Worker != "" {
		if err := jobhost.CheckWorker(query.Worker); err != nil {
			return jobhost.DeadSummary{}, err
		}
	}
	before := query.Before
	if before.IsZero() {
		before = q.clock.now().Truncate(time.Hour).Add(time.Hour) // this hour too
	}
	after := query.After
	if after.IsZero() {
		after = before.Add(-24 * time.Hour)
	}
	after, before = after.UTC().Truncate(time.Hour), before.UTC().Add(time.Hour-1).Truncate(time.Hour)
	if !after.Before(before) || before.Sub(after) > summaryDays*24*time.Hour {
		return jobhost.DeadSummary{}, &jobhost.Error{
			Code: jobhost.CodeInvalid, Field: "after",
			Message: fmt.Sprintf("after and before are not up to %d days apart", summaryDays),
		}
	}
	records, err := q.store.Deaths(ctx, record.MillisOf(after), record.MillisOf(before))
	if err != nil {
		return jobhost.DeadSummary{}, err
	}
	return summarize(after, before, query.Worker, records), nil
}

func summarize(after, before time.Time, worker string, records []record.DeathRecord) jobhost.DeadSummary {
	s := jobhost.DeadSummary{After: after, Before: before}
	step := time.Hour
	if before.Sub(after) > summaryHours*time.Hour {
		step = 24 * time.Hour
	}
	for at := after; at.Before(before); at = at.Add(step) {
		s.Trend = append(s.Trend, jobhost.DeathTime{Since: at})
	}
	codes, categories, workers := map[string]int64{}, map[string]int64{}, map[string]int64{}
	for i := range records {
		r := &records[i]
		if worker != "" && worker != r.Worker {
			continue
		}
		s.Deaths += r.N
		codes[r.Code] += r.N
		categories[string(r.Category)] += r.N
		workers[r.Worker] += r.N
		s.Trend[int(r.Hour.Time().Sub(after)/step)].Deaths += r.N
	}
	s.Codes, s.Categories, s.Workers = top(codes), top(categories), top(workers)
	return s
}

// top returns the names with the highest numbers, the highest first.
func top(numbers map[string]int64) []jobhost.DeathCount {
	list := make([]jobhost.DeathCount, 0, len(numbers))
	for name, n := range numbers {
		list = append(list, jobhost.DeathCount{Name: name, Deaths: n})
	}
	slices.SortFunc(list, func(a, b jobhost.DeathCount) int {
		return cmp.Or(cmp.Compare(b.Deaths, a.Deaths), strings.Compare(a.Name, b.Name))
	})
	return list[:min(len(list), summaryTop)]
}
