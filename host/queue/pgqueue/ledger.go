package pgqueue

import (
	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// ledger is what the writer keeps in memory beside the rows: the next key, the workers' numbers, and sums that are
// written once in a commit. It is a [pgdb.Member].
type ledger struct {
	db      *pgdb.DB
	next    int64            // key of the next task
	written int64            // up to where keys were taken from the database
	settled [2]int64         // both, as of the last commit
	workers map[string]int64 // by name
	names   map[int64]string // of the workers
	added   []string         // workers of the commit in the making
	unsaved int              // how many of them, the last ones, were not flushed

	dead deadCounts

	slot int16 // that the next commit counts in

	// Of the commit in the making, what was not flushed:
	deltas map[counterKey]int64
	spans  []span
	dues   map[int64]int64 // when blocks are to be looked at
}

type counterKey struct {
	worker int64
	status record.Status
}

// keysAhead is how many keys are taken from the database beyond those that a commit needs; a new term leaves out what is
// left of them. A row that each commit changed would have a version for each while there is an old snapshot, such as
// that of a dump, and each commit would walk past all of them.
const keysAhead = 1 << 14

// counterSlots is over how many rows a count is spread, each of which is changed by one commit in so many only. It is
// their sum. The reason is that of keysAhead.
const counterSlots = 64

// span is the range of creation times in a block of keys.
type span struct{ block, low, high int64 }

// blockOf returns the block of a key.
func blockOf(key int64) int64 { return key >> 10 }

func newLedger(db *pgdb.DB) ledger {
	return ledger{
		db: db, workers: map[string]int64{}, names: map[int64]string{},
		deltas: map[counterKey]int64{}, dues: map[int64]int64{},
	}
}

// load reads the ledger of a database.
func (l *ledger) load(s *pgdb.Session) error {
	var id int64
	var name string
	err := s.Each([]any{&id, &name}, func() error {
		l.workers[name], l.names[id] = id, name
		return nil
	}, "SELECT id, name FROM jobhost.worker")
	if err != nil {
		return err
	}
	if err := l.dead.load(s); err != nil {
		return err
	}
	_, err = s.One([]any{&l.next}, "SELECT next FROM jobhost.sequence WHERE id=1")
	l.written, l.settled = l.next, [2]int64{l.next, l.next}
	return err
}

// worker returns the number of a worker, a new one if need be.
func (l *ledger) worker(name string) int64 {
	if id, ok := l.workers[name]; ok {
		return id
	}
	id := int64(len(l.workers)) + 1 // workers are never removed
	l.workers[name], l.names[id] = id, name
	l.added = append(l.added, name)
	l.unsaved++
	return id
}

// count adds to the number of a worker's tasks with a status.
func (l *ledger) count(worker int64, status record.Status, n int64) {
	l.deltas[counterKey{worker, status}] += n
	if status == record.Dead {
		l.dead.add(worker, n)
	}
}

// created notes when the job of a key was created.
func (l *ledger) created(key int64, at record.Millis) {
	block, t := blockOf(key), int64(at)
	if n := len(l.spans); n > 0 && l.spans[n-1].block == block {
		s := &l.spans[n-1]
		s.low, s.high = min(s.low, t), max(s.high, t)
		return
	}
	l.spans = append(l.spans, span{block, t, t})
}

// expires notes until when a task of the job is kept.
func (l *ledger) expires(job int64, at record.Millis) {
	if at == 0 {
		return
	}
	block := blockOf(job)
	if due, ok := l.dues[block]; !ok || int64(at) < due {
		l.dues[block] = int64(at)
	}
}

// Read implements [pgdb.Member].
func (l *ledger) Read(*pgx.Batch) {}

// Flush implements [pgdb.Member].
func (l *ledger) Flush(b *pgx.Batch) error {
	if l.unsaved > 0 {
		names := l.added[len(l.added)-l.unsaved:]
		b.Queue(l.db.SQL("INSERT INTO jobhost.worker (id, name) SELECT * FROM unnest($1::bigint[], $2::text[])"),
			column(names, func(name *string) int64 { return l.workers[*name] }), names)
	}
	l.flushCounters(b)
	if len(l.spans) > 0 {
		b.Queue(l.db.SQL(`INSERT INTO jobhost.span AS s (block, low, high, due)
			SELECT block, min(low), max(high), 0 FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS t(block, low, high) GROUP BY block
			ON CONFLICT (block) DO UPDATE SET low=least(s.low, excluded.low), high=greatest(s.high, excluded.high)`),
			column(l.spans, func(s *span) int64 { return s.block }), column(l.spans, func(s *span) int64 { return s.low }),
			column(l.spans, func(s *span) int64 { return s.high }))
	}
	if len(l.dues) > 0 {
		blocks, dues := make([]int64, 0, len(l.dues)), make([]int64, 0, len(l.dues))
		for block, due := range l.dues {
			blocks, dues = append(blocks, block), append(dues, due)
		}
		b.Queue(l.db.SQL(`UPDATE jobhost.span AS s SET due=t.due FROM unnest($1::bigint[], $2::bigint[]) AS t(block, due)
			WHERE s.block=t.block AND (s.due=0 OR s.due>t.due)`), blocks, dues)
	}
	if l.next > l.written {
		l.written = l.next + keysAhead
		b.Queue(l.db.SQL("UPDATE jobhost.sequence SET next=$1 WHERE id=1"), l.written)
	}
	return nil
}

func (l *ledger) flushCounters(b *pgx.Batch) {
	var workers, numbers []int64
	var statuses []int16
	for key, n := range l.deltas {
		if n != 0 {
			workers, statuses, numbers = append(workers, key.worker), append(statuses, int16(key.status)), append(numbers, n)
		}
	}
	if len(workers) == 0 {
		return
	}
	b.Queue(l.db.SQL(`INSERT INTO jobhost.counter AS c (worker, status, n, slot) SELECT t.*, $4 FROM unnest($1::bigint[], $2::smallint[], $3::bigint[]) t
		ON CONFLICT (worker, status, slot) DO UPDATE SET n=c.n+excluded.n`), workers, statuses, numbers, l.slot)
}

// Flushed implements [pgdb.Member].
func (l *ledger) Flushed() {
	l.unsaved = 0
	l.spans = l.spans[:0]
	clear(l.deltas)
	clear(l.dues)
}

// AfterCommit implements [pgdb.Member].
func (l *ledger) AfterCommit() {
	l.Flushed()
	l.settled = [2]int64{l.next, l.written}
	l.slot = (l.slot + 1) % counterSlots
	l.added = l.added[:0]
	l.dead.keep()
}

// AfterRollback implements [pgdb.Member].
func (l *ledger) AfterRollback() {
	for _, name := range l.added {
		delete(l.names, l.workers[name])
		delete(l.workers, name)
	}
	l.added = l.added[:0]
	l.next, l.written = l.settled[0], l.settled[1]
	l.dead.undo()
	l.Flushed()
}
