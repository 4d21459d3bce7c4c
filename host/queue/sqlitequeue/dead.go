package sqlitequeue

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

const (
	// deathMemory is how long deaths are counted.
	deathMemory = 90 * 24 * time.Hour
	// deathKinds bounds the rows that a worker gets for one hour, since guests
	// choose their codes.
	deathKinds = 200
	// deadLooks is how many letters one page of a list looks at, besides those
	// that it returns.
	deadLooks = 5000
)

// bury makes a dead letter of a task that died.
func (l *ledger) bury(tx *sqlitedb.Tx, op *record.Settle, worker, job int64, res *record.OpResult) error {
	var f jobhost.Failure
	if op.Failure != nil {
		f = *op.Failure
	}
	sum := deadSum(int64(op.Key), int64(op.EndedAt), int64(op.Attempt), string(f.Category), f.Code, string(f.Severity), f.Message)
	err := tx.Stmt(`INSERT OR REPLACE INTO dead(task, worker, died_at, revived_at, attempts, category, code, severity, message, sum)
		VALUES(?,?,?,0,?,?,?,?,?,?)`).Int(int64(op.Key)).Int(worker).Int(int64(op.EndedAt)).Int(int64(op.Attempt)).
		Text(string(f.Category)).Text(f.Code).Text(string(f.Severity)).Text(f.Message).Int(sum).Exec()
	if err != nil {
		return err
	}
	if err := countDeath(tx, int64(op.EndedAt.Hour()), worker, string(f.Category), f.Code); err != nil {
		return err
	}
	if op.MaxDead == 0 {
		return nil
	}
	if err := l.evict(tx, worker, job, int64(op.MaxDead), res); err != nil || len(res.Evicted) == 0 {
		return err
	}
	return tellGone(tx, res)
}

func countDeath(tx *sqlitedb.Tx, hour, worker int64, category, code string) error {
	const add = "UPDATE death SET n=n+1 WHERE hour=? AND worker=? AND category=? AND code=?"
	err := tx.Stmt(add).Int(hour).Int(worker).Text(category).Text(code).Exec()
	if err != nil || tx.Changes() > 0 {
		return err
	}
	s := tx.Stmt("SELECT count(*) FROM death WHERE hour=? AND worker=?").Int(hour).Int(worker)
	if s.Step() && s.ColInt(0) >= deathKinds {
		code = jobhost.OtherCodes
	}
	if err := s.Done(); err != nil {
		return err
	}
	return tx.Stmt(`INSERT INTO death(hour, worker, category, code, n) VALUES(?,?,?,?,1)
		ON CONFLICT DO UPDATE SET n=n+1`).Int(hour).Int(worker).Text(category).Text(code).Exec()
}

// Dead implements [queue.DeadReader].
func (s *Store) Dead(ctx context.Context, q record.DeadQuery) (letters []record.DeadRecord, next record.DeadPlace, err error) {
	err = s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		list := &deadList{r: r, q: &q, below: q.Below, text: strings.ToLower(q.Text)}
		letters, next, err = list.page()
		return err
	})
	if err != nil {
		return nil, record.DeadPlace{}, fmt.Errorf("list dead letters: %w", err)
	}
	return letters, next, nil
}

// deadList makes a page of a list: it goes down the index that selects most,
// in pieces, and looks at the rest of what is asked for row by row.
type deadList struct {
	r     *sqlitedb.Reader
	q     *record.DeadQuery
	text  string // in lower case
	below record.DeadPlace
}

// The ways to go down: by an index of one column and the time of death. A pair
// is compared as such, since many may die in the same millisecond.
const (
	deadColumns = `SELECT dead.task, died_at, revived_at, dead.category, dead.code, dead.severity, dead.message,
		(SELECT name FROM worker WHERE worker.id=dead.worker), task.idx, dead.attempts, job.id, job.labels, job.created_at, dead.sum
		FROM dead INDEXED BY %s JOIN task ON task.seq=dead.task JOIN job ON job.seq=task.job
		WHERE %s (died_at,dead.task)<(?2,?3) AND died_at>=?4 AND (?5 OR revived_at=0)
		ORDER BY died_at DESC, dead.task DESC LIMIT ?6`
	deadPiece = 500
)

var (
	deadByTime     = fmt.Sprintf(deadColumns, "dead_time", "?1=?1 AND")
	deadByWorker   = fmt.Sprintf(deadColumns, "dead_worker", "dead.worker=?1 AND")
	deadByCode     = fmt.Sprintf(deadColumns, "dead_code", "dead.code=?1 AND")
	deadByCategory = fmt.Sprintf(deadColumns, "dead_category", "dead.category=?1 AND")
)

func (l *deadList) page() (letters []record.DeadRecord, next record.DeadPlace, err error) {
	if l.q.Limit <= 0 {
		return nil, record.DeadPlace{}, nil
	}
	if top := l.q.Before; top > 0 && (l.below == record.DeadPlace{} || l.below.DiedAt >= top) {
		l.below = record.DeadPlace{DiedAt: top - 1, Key: math.MaxInt64}
	} else if (l.below == record.DeadPlace{}) {
		l.below = record.DeadPlace{DiedAt: math.MaxInt64, Key: math.MaxInt64}
	}
	for looked := 0; looked < deadLooks; looked += deadPiece {
		want := min(deadPiece, 4*(l.q.Limit-len(letters)))
		rows, err := l.piece(want)
		if err != nil {
			return nil, record.DeadPlace{}, err
		}
		for i := range rows {
			l.below = rows[i].DeadPlace
			if l.matches(&rows[i]) {
				letters = append(letters, rows[i])
			}
			if len(letters) == l.q.Limit && (i+1 < len(rows) || len(rows) == want) {
				return letters, l.below, nil
			}
		}
		if len(rows) < want {
			return letters, record.DeadPlace{}, nil
		}
	}
	return letters, l.below, nil
}

// piece reads the next letters.
func (l *deadList) piece(n int) (rows []record.DeadRecord, err error) {
	var s *sqlitedb.Stmt
	switch {
	case l.q.Code != "":
		s = l.r.Stmt(deadByCode).Text(l.q.Code)
	case l.q.Worker != "":
		id, err := workerID(l.r, l.q.Worker)
		if id == 0 || err != nil {
			return nil, err
		}
		s = l.r.Stmt(deadByWorker).Int(id)
	case l.q.Category != "":
		s = l.r.Stmt(deadByCategory).Text(string(l.q.Category))
	default:
		s = l.r.Stmt(deadByTime).Int(0)
	}
	retried := int64(0)
	if l.q.Retried {
		retried = 1
	}
	s.Int(int64(l.below.DiedAt)).Int(int64(l.below.Key)).Int(int64(l.q.After)).Int(retried).Int(int64(n))
	for s.Step() {
		row := record.DeadRecord{
			DeadPlace: record.DeadPlace{Key: record.Key(s.ColInt(0)), DiedAt: record.Millis(s.ColInt(1))},
			RevivedAt: record.Millis(s.ColInt(2)),
			Category:  jobhost.Category(s.ColText(3)), Code: s.ColText(4), Severity: jobhost.Severity(s.ColText(5)), Message: s.ColText(6),
			Worker: s.ColText(7), Index: int(s.ColInt(8)), Attempts: int(s.ColInt(9)),
			Job: s.ColText(10), CreatedAt: record.Millis(s.ColInt(12)),
		}
		if !s.ColSum(13, deadSum(int64(row.Key), int64(row.DiedAt), int64(row.Attempts), string(row.Category), row.Code, string(row.Severity), row.Message)) {
			lost := lostRecord(row.Index, row.Attempts)
			row.Category, row.Code, row.Severity, row.Message = lost.Category, lost.Code, lost.Severity, lost.Message
		}
		if labels := s.ColBlob(11); len(labels) > 0 {
			if err := json.Unmarshal(labels, &row.Labels); err != nil {
				_ = s.Done()
				return nil, fmt.Errorf("labels of job %s: %w", row.Job, err)
			}
		}
		rows = append(rows, row)
	}
	return rows, s.Done()
}

// matches looks at what the index did not select by.
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

// Deaths implements [queue.DeadReader].
func (s *Store) Deaths(ctx context.Context, after, before record.Millis) (deaths []record.DeathRecord, err error) {
	err = s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		st := r.Stmt(`SELECT hour, (SELECT name FROM worker WHERE worker.id=death.worker), category, code, n
			FROM death WHERE hour>=? AND hour<?`).Int(int64(after)).Int(int64(before))
		for st.Step() {
			deaths = append(deaths, record.DeathRecord{
				Hour: record.Millis(st.ColInt(0)), Worker: st.ColText(1),
				Category: jobhost.Category(st.ColText(2)), Code: st.ColText(3), N: st.ColInt(4),
			})
		}
		return st.Done()
	})
	if err != nil {
		return nil, fmt.Errorf("count deaths: %w", err)
	}
	return deaths, nil
}
