package pgqueue

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

const (
	// deadLooks is about how many letters a page of a list reads at most.
	deadLooks = 5000
	deadPiece = 500
)

// Dead implements [record.DeadReader].
func (s *Store) Dead(ctx context.Context, q record.DeadQuery) (letters []record.DeadRecord, next record.DeadPlace, err error) {
	if q.Limit <= 0 || !storable(q.Worker) || !storable(q.Code) || !storable(string(q.Category)) {
		return nil, record.DeadPlace{}, nil
	}
	err = s.db.Read(ctx, func(r *pgdb.Session) error {
		list := &deadList{r: r, q: &q, below: q.Below, text: strings.ToLower(q.Text)}
		letters, next, err = list.page()
		return err
	})
	if err != nil {
		return nil, record.DeadPlace{}, fmt.Errorf("list dead letters: %w", err)
	}
	return letters, next, nil
}

// deadList makes a page of a list. It reads the most selective index in pieces, and checks the other conditions letter by
// letter.
type deadList struct {
	r     *pgdb.Session
	q     *record.DeadQuery
	text  string // in lower case
	below record.DeadPlace
}

// The queries read an index of one column and the time of death, from the top. Time and key are compared as a pair, since
// many tasks may die in the same millisecond. The column is part of that comparison, rather than equal to a value: then only
// its own index has the order asked for. Otherwise the planner may read all letters by time, expecting a match soon. That a
// letter was not revived is an inequality for the same reason: without statistics an equality is expected to be rare.
const (
	deadLetters = `SELECT d.task, died_at, revived_at, category, code, severity, message, name, idx, attempts, j.id, labels, created_at
	FROM (SELECT * FROM jobhost.dead WHERE %s AND revived_at<=@revived ORDER BY %s LIMIT @limit) d
	JOIN jobhost.worker ON worker.id=d.worker
	CROSS JOIN LATERAL (SELECT idx, job.id, labels, created_at FROM jobhost.task JOIN jobhost.job ON job.seq=task.job WHERE task.seq=d.task OFFSET 0) j
	ORDER BY died_at DESC, d.task DESC`
	deadOf    = `(%[1]s, died_at, task)<(%[2]s, @died, @task) AND (%[1]s, died_at, task)>=(%[2]s, 0, 0)`
	deadOrder = `died_at DESC, task DESC`
)

var (
	deadByTime     = fmt.Sprintf(deadLetters, "(died_at, task)<(@died, @task)", deadOrder)
	deadByWorker   = fmt.Sprintf(deadLetters, fmt.Sprintf(deadOf, "worker", "(SELECT id FROM jobhost.worker WHERE name=@worker)"), "worker DESC, "+deadOrder)
	deadByCode     = fmt.Sprintf(deadLetters, fmt.Sprintf(deadOf, "code", "@code::text"), "code DESC, "+deadOrder)
	deadByCategory = fmt.Sprintf(deadLetters, fmt.Sprintf(deadOf, "category", "@category::text"), "category DESC, "+deadOrder)
)

// deadSQL returns the most selective statement.
func deadSQL(q *record.DeadQuery) string {
	switch {
	case q.Code != "":
		return deadByCode
	case q.Worker != "":
		return deadByWorker
	case q.Category != "":
		return deadByCategory
	}
	return deadByTime
}

// deadArgs returns the arguments of these statements.
func deadArgs(q *record.DeadQuery, below record.DeadPlace, n int) pgx.NamedArgs {
	revived := int64(0)
	if q.Retried {
		revived = math.MaxInt64
	}
	return pgx.NamedArgs{
		"worker": q.Worker, "code": q.Code, "category": string(q.Category), "revived": revived,
		"died": below.DiedAt, "task": below.Key, "limit": n,
	}
}

// begin sets where the list begins.
func (l *deadList) begin() {
	if top := l.q.Before; top > 0 && (l.below == record.DeadPlace{} || l.below.DiedAt >= top) {
		l.below = record.DeadPlace{DiedAt: top - 1, Key: math.MaxInt64}
	} else if (l.below == record.DeadPlace{}) {
		l.below = record.DeadPlace{DiedAt: math.MaxInt64, Key: math.MaxInt64}
	}
}

func (l *deadList) page() (letters []record.DeadRecord, next record.DeadPlace, err error) {
	l.begin()
	for looked := 0; looked < deadLooks; looked += deadPiece {
		want := min(deadPiece, 4*(l.q.Limit-len(letters)))
		rows, more, err := l.piece(want)
		if err != nil {
			return nil, record.DeadPlace{}, err
		}
		for i := range rows {
			l.below = rows[i].DeadPlace
			if l.matches(&rows[i]) {
				letters = append(letters, rows[i])
			}
			if len(letters) == l.q.Limit && (i+1 < len(rows) || more) {
				return letters, l.below, nil
			}
		}
		if !more {
			return letters, record.DeadPlace{}, nil
		}
	}
	return letters, l.below, nil
}

// piece reads the next letters, and reports whether there may be more.
func (l *deadList) piece(n int) (rows []record.DeadRecord, more bool, err error) {
	var d record.DeadRecord
	var labels string
	read, old := 0, false
	err = l.r.Each([]any{
		&d.Key, &d.DiedAt, &d.RevivedAt, &d.Category, &d.Code, &d.Severity, &d.Message, &d.Worker, &d.Index, &d.Attempts, &d.Job, &labels, &d.CreatedAt,
	}, func() error {
		read++
		old = old || d.DiedAt < l.q.After
		if old {
			return nil
		}
		row := d
		if labels != "" {
			if err := json.Unmarshal([]byte(labels), &row.Labels); err != nil {
				return fmt.Errorf("labels of job %s: %w", row.Job, err)
			}
		}
		rows = append(rows, row)
		return nil
	}, deadSQL(l.q), deadArgs(l.q, l.below, n))
	return rows, read == n && !old, err
}

// matches checks the conditions that the index did not.
func (l *deadList) matches(row *record.DeadRecord) bool {
	q := l.q
	if q.Worker != "" && q.Worker != row.Worker || q.Category != "" && q.Category != row.Category {
		return false
	}
	for k, v := range q.Labels {
		if have, ok := row.Labels[k]; !ok || have != v {
			return false
		}
	}
	return l.text == "" || strings.Contains(strings.ToLower(row.Message), l.text) ||
		strings.Contains(strings.ToLower(row.Code), l.text) || strings.Contains(strings.ToLower(row.Job), l.text)
}

// Deaths implements [record.DeadReader].
func (s *Store) Deaths(ctx context.Context, after, before record.Millis) (deaths []record.DeathRecord, err error) {
	var d record.DeathRecord
	err = s.ask(ctx, func() { deaths = nil }, []any{&d.Hour, &d.Worker, &d.Category, &d.Code, &d.N}, func() error {
		deaths = append(deaths, d)
		return nil
	}, `SELECT hour, name, category, code, n FROM jobhost.death JOIN jobhost.worker ON worker.id=death.worker
		WHERE hour>=$1 AND hour<$2 ORDER BY hour, worker, category, code`, after, before)
	if err != nil {
		return nil, fmt.Errorf("count deaths: %w", err)
	}
	return deaths, nil
}
