package sqlitequeue

import (
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// ledger is what the writer keeps in memory beside the rows: the next key, the
// workers' numbers, and sums that are written once per transaction instead of
// once per operation. Only the writer uses it; it is a [sqlitedb.Member].
type ledger struct {
	next    int64            // key of the next task
	settled int64            // next, as of the last commit
	workers map[string]int64 // by name
	names   map[int64]string // of the workers
	keys    *keys
	added   []string // workers of the open transaction

	companions []Companion

	// evicting are keys, by worker, below which dead tasks that an eviction looked at are steps of
	// workflows. It goes on from there, and begins again when it has come to the last.
	evicting map[int64]int64

	deltas [][4]int64 // by worker and status, of the open transaction
	dirty  []int64    // workers with an entry in deltas
	spans  []span     // of the open transaction

	dues map[int64]int64 // when blocks are to be looked at, of the open transaction
}

// span is the range of creation times in a block of keys.
type span struct{ block, low, high int64 }

// blockOf returns the block of a key.
func blockOf(key int64) int64 { return key >> 10 }

// blockEnd returns the first key after a block.
func blockEnd(block int64) int64 { return (block + 1) << 10 }

func newLedger() *ledger {
	return &ledger{
		workers: make(map[string]int64), names: make(map[int64]string), keys: newKeys(),
		dues: make(map[int64]int64), evicting: make(map[int64]int64),
	}
}

// load reads the ledger of a database that was just opened.
func (l *ledger) load(q sqlitedb.Querier) error {
	s := q.Stmt("SELECT id, name FROM worker")
	for s.Step() {
		l.workers[s.ColText(1)] = s.ColInt(0)
		l.names[s.ColInt(0)] = s.ColText(1)
	}
	if err := s.Done(); err != nil {
		return err
	}
	s = q.Stmt("SELECT next FROM sequence WHERE id=1")
	if s.Step() {
		l.next = s.ColInt(0)
	}
	l.settled = l.next
	if err := s.Done(); err != nil {
		return err
	}
	return l.keys.load(q)
}

// worker returns the number of a worker, a new one if need be.
func (l *ledger) worker(tx *sqlitedb.Tx, name string) (int64, error) {
	if id, ok := l.workers[name]; ok {
		return id, nil
	}
	id := int64(len(l.workers)) + 1 // workers are never removed
	if err := tx.Stmt("INSERT INTO worker(id, name) VALUES(?,?)").Int(id).Text(name).Exec(); err != nil {
		return 0, err
	}
	l.workers[name], l.names[id] = id, name
	l.added = append(l.added, name)
	return id, nil
}

// count adds to the number of a worker's tasks with a status.
func (l *ledger) count(worker int64, status record.Status, n int64) {
	for int64(len(l.deltas)) <= worker {
		l.deltas = append(l.deltas, [4]int64{})
	}
	d := &l.deltas[worker]
	if *d == ([4]int64{}) {
		l.dirty = append(l.dirty, worker) // it may be there already, which does no harm
	}
	d[status] += n
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

// BeforeCommit implements [sqlitedb.Member].
func (l *ledger) BeforeCommit(tx *sqlitedb.Tx) error {
	for _, worker := range l.dirty {
		for status, n := range l.deltas[worker] {
			if n == 0 {
				continue
			}
			err := tx.Stmt(`INSERT INTO counter(worker, status, n) VALUES(?,?,?)
				ON CONFLICT DO UPDATE SET n=n+excluded.n`).
				Int(worker).Int(int64(status)).Int(n).Exec()
			if err != nil {
				return err
			}
		}
		l.deltas[worker] = [4]int64{}
	}
	l.dirty = l.dirty[:0]
	if err := l.writeSpans(tx); err != nil {
		return err
	}
	if l.next == l.settled {
		return nil
	}
	return tx.Stmt("UPDATE sequence SET next=? WHERE id=1").Int(l.next).Exec()
}

// writeSpans writes what is known of blocks: of those that are new, and when they
// are to be looked at.
func (l *ledger) writeSpans(tx *sqlitedb.Tx) error {
	for _, s := range l.spans {
		err := tx.Stmt(`INSERT INTO span(block, low, high) VALUES(?,?,?)
			ON CONFLICT DO UPDATE SET low=min(low,excluded.low), high=max(high,excluded.high)`).
			Int(s.block).Int(s.low).Int(s.high).Exec()
		if err != nil {
			return err
		}
	}
	l.spans = l.spans[:0]
	for block, due := range l.dues {
		if err := tx.Stmt("UPDATE span SET due=?1 WHERE block=?2 AND (due=0 OR due>?1)").Int(due).Int(block).Exec(); err != nil {
			return err
		}
	}
	clear(l.dues)
	return nil
}

// AfterCommit implements [sqlitedb.Member].
func (l *ledger) AfterCommit() {
	l.settled = l.next
	l.added = l.added[:0]
}

// AfterRollback implements [sqlitedb.Member].
func (l *ledger) AfterRollback() {
	l.next = l.settled
	for _, name := range l.added {
		delete(l.names, l.workers[name])
		delete(l.workers, name)
	}
	l.added = l.added[:0]
	for _, worker := range l.dirty {
		l.deltas[worker] = [4]int64{}
	}
	l.dirty = l.dirty[:0]
	l.spans = l.spans[:0]
	clear(l.dues)
}
