package pgqueue

import (
	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// ledger is what the writer keeps in memory besides rows: the next key, the workers' numbers, and sums that are written once
// for each commit. It is a [pgdb.Member].
//
// No single row is written by every commit. As long as a session in the database has an old snapshot, all versions of a row
// since then are kept, and each lookup of the row goes through them.
type ledger struct {
	db       *pgdb.DB
	next     int64            // key of the next task
	settled  int64            // next, as of the last commit
	reserved reservation      // of keys
	ages     ages             // of counters
	workers  map[string]int64 // by name
	names    map[int64]string // of the workers
	added    []string         // workers of this commit
	unsaved  int              // how many of added, the last ones, were not flushed

	dead deadCounts

	// Of the commit in the making, what was not flushed:
	deltas map[counterKey]int64
	spans  []span
	dues   map[int64]int64 // when to look at a block for jobs to remove, by block
}

type counterKey struct {
	worker int64
	status record.Status
}

// reservation is how far keys may be given out: the database has that instead of the next key. Those between the two are
// left out by the next term.
type reservation struct {
	flushed int64 // the first that may not be, as it was written
	settled int64 // as of the last commit
}

// reservedKeys is how many keys are reserved at a time.
const reservedKeys = 1 << 14

// extend makes sure that all keys before next are reserved, and reports whether that is to be written.
func (r *reservation) extend(next int64) bool {
	if next <= r.flushed {
		return false
	}
	r.flushed = next + reservedKeys
	return true
}

// ages are those of the rows of counters: each has what some commits have added, and a number is the sum of them.
type ages struct {
	now    int64 // that of the rows which are written
	writes int   // of rows of this age
	oldest int64 // as of the last commit
	joined int64 // the oldest, as it was written

	most  int64 // of how many ages there are rows before they are added up
	ofOne int   // how many times rows of one age are written
}

// load begins an age after those of a database.
func (a *ages) load(s *pgdb.Session) error {
	_, err := s.One([]any{&a.now, &a.oldest}, "SELECT coalesce(max(age), 0)+1, coalesce(min(age), 0) FROM jobhost.counter")
	a.writes, a.joined = 0, a.oldest
	return err
}

// next returns the age of the rows to be written.
func (a *ages) next() int64 {
	if a.writes++; a.writes > a.ofOne {
		a.now++
		a.writes = 1
	}
	return a.now
}

// many reports whether there are rows of so many ages that they are to be added up.
func (a *ages) many() bool { return a.now-a.joined >= a.most }

// span is the range of creation times in a block of keys.
type span struct{ block, low, high int64 }

// blockOf returns the block of a key.
func blockOf(key int64) int64 { return key >> 10 }

func newLedger(db *pgdb.DB) ledger {
	return ledger{
		db: db, workers: map[string]int64{}, names: map[int64]string{},
		deltas: map[counterKey]int64{}, dues: map[int64]int64{},
		ages: ages{most: 64, ofOne: 256},
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
	if err := l.ages.load(s); err != nil {
		return err
	}
	_, err = s.One([]any{&l.next}, "SELECT next FROM jobhost.sequence WHERE id=1")
	l.settled, l.reserved = l.next, reservation{flushed: l.next, settled: l.next}
	return err
}

// worker returns the number of a worker, and gives a new worker one.
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

// expires notes the time until which a task of a job is kept; 0 = forever.
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
	if l.reserved.extend(l.next) {
		b.Queue(l.db.SQL("UPDATE jobhost.sequence SET next=$1 WHERE id=1"), l.reserved.flushed)
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
	age := l.ages.next()
	if l.ages.many() {
		b.Queue(l.db.SQL(`WITH old AS (DELETE FROM jobhost.counter WHERE age<$1 RETURNING worker, status, n)
			INSERT INTO jobhost.counter (worker, status, n, age) SELECT worker, status, sum(n), $1 FROM old GROUP BY worker, status HAVING sum(n)<>0`), age)
		l.ages.joined = age
	}
	b.Queue(l.db.SQL(`INSERT INTO jobhost.counter AS c (worker, status, n, age) SELECT *, $4 FROM unnest($1::bigint[], $2::smallint[], $3::bigint[])
		ON CONFLICT (worker, status, age) DO UPDATE SET n=c.n+excluded.n`), workers, statuses, numbers, age)
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
	l.settled, l.reserved.settled, l.ages.oldest = l.next, l.reserved.flushed, l.ages.joined
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
	l.next, l.reserved.flushed, l.ages.joined = l.settled, l.reserved.settled, l.ages.oldest
	l.dead.undo()
	l.Flushed()
}
