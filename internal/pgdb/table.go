package pgdb

import (
	"cmp"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5"
)

// Table keeps rows of a table by their key, as part of an image. Rows that were read stay known from commit to commit, since
// this host is the only one that writes; some are evicted when there are too many. It has the methods of a [Member] but
// for Flush: what there is to write is in Changes.
type Table[K comparable, R any] struct {
	DB *DB
	// SQL selects the rows with some keys, which Args turns into its arguments; Scan reads one of the rows.
	SQL  string
	Args func(keys []K) []any
	Scan func(rows pgx.Rows) (K, R, error)
	// Bytes is how much memory the content of a row takes; nil = rows are small.
	Bytes func(*R) int
	// Cold reports whether a row is unlikely to be needed again, so that it isn't kept; nil = all are kept.
	Cold func(*R) bool

	rows    map[K]*entry[R]
	bytes   int // of the content of rows, as far as they were read or committed
	wanted  []K
	changed []K           // keys with a change that was not flushed, in the order of the first one
	later   []laterKey[K] // keys that were asked for after calls of [Tx.Direct], in order
}

// laterKey is a key that was asked for after the part of a change that called [Tx.Direct] last.
type laterKey[K comparable] struct {
	direct int
	key    K
}

// entry is a row as it is in the database, and as it will be; nil = there is none.
type entry[R any] struct {
	was, is *R
	known   bool // was is what the database has; false = the row was put without having been read
	changed bool
}

// Bounds of the rows that stay known from commit to commit.
const (
	maxRows     = 1 << 15
	maxRowBytes = 16 << 20 // of their content
)

// Get returns a row, which must not be modified; nil = there is none, or it has to be read first: see [Tx.Missed].
func (t *Table[K, R]) Get(tx *Tx, key K) *R {
	if tx.scouting {
		t.note(tx, key)
	}
	e := t.rows[key]
	if e == nil {
		t.want(tx, key)
		if tx.Miss() {
			e = t.rows[key]
		}
	}
	if e == nil {
		return nil
	}
	return e.is
}

// Want asks for rows that Get is about to be called for, so that one read fetches them all: once [Tx.Direct] has begun a
// transaction, each Get would read its row by itself.
func (t *Table[K, R]) Want(tx *Tx, keys []K) {
	before := len(t.wanted)
	for _, key := range keys {
		if tx.scouting {
			t.note(tx, key)
		}
		if t.rows[key] == nil {
			t.want(tx, key)
		}
	}
	if len(t.wanted) > before {
		tx.Miss()
	}
}

// want asks for a row. Those that were read for commits that failed are forgotten now, if they are too many: while none
// succeeds, nothing else would. What this run does is thrown away, so that it may have looked at them already.
func (t *Table[K, R]) want(tx *Tx, key K) {
	if tx.first && !tx.open {
		t.evict()
	}
	t.wanted = append(t.wanted, key)
}

// note records that a row is asked for after a call of [Tx.Direct].
func (t *Table[K, R]) note(tx *Tx, key K) {
	if len(t.later) == 0 {
		tx.writer.later = append(tx.writer.later, t)
	}
	t.later = append(t.later, laterKey[K]{tx.direct, key})
}

// recall asks for the rows that were noted after the part with a number, which calls [Tx.Direct].
func (t *Table[K, R]) recall(direct int) {
	first, _ := slices.BinarySearchFunc(t.later, direct, func(l laterKey[K], direct int) int { return cmp.Compare(l.direct, direct) })
	for _, l := range t.later[first:] {
		if l.direct != direct {
			break
		}
		if t.rows[l.key] == nil {
			t.wanted = append(t.wanted, l.key)
		}
	}
}

// unnote forgets what was noted.
func (t *Table[K, R]) unnote() {
	clear(t.later)
	t.later = t.later[:0]
}

// Known returns a row if it is known. It reads nothing; nil = there is none, or it is not known.
func (t *Table[K, R]) Known(key K) *R {
	if e := t.rows[key]; e != nil {
		return e.is
	}
	return nil
}

// Change returns the change of a row that was not flushed yet; false = it has none.
func (t *Table[K, R]) Change(key K) (RowChange[K, R], bool) {
	if e := t.rows[key]; e != nil && e.changed {
		return RowChange[K, R]{key, e.was, e.is}, true
	}
	return RowChange[K, R]{}, false
}

// Look reads a row from the database, not the image, for goroutines other than the writer's; nil = there is none.
func (t *Table[K, R]) Look(s *Session, key K) (*R, error) {
	rows, err := s.conn.Query(s.ctx, s.db.SQL(t.SQL), t.Args([]K{key})...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found *R
	for rows.Next() {
		_, row, err := t.Scan(rows)
		if err != nil {
			return nil, err
		}
		found = &row
	}
	return found, rows.Err()
}

// Put adds or replaces a row. A row that Get was not called for before counts as new.
func (t *Table[K, R]) Put(key K, row R) { t.change(key).is = &row }

// Delete removes a row, if there is one.
func (t *Table[K, R]) Delete(key K) { t.change(key).is = nil }

func (t *Table[K, R]) change(key K) *entry[R] {
	if t.rows == nil {
		t.rows = make(map[K]*entry[R])
	}
	e := t.rows[key]
	if e == nil {
		e = &entry[R]{}
		t.rows[key] = e
	}
	if !e.changed {
		e.changed = true
		t.changed = append(t.changed, key)
	}
	return e
}

// RowChange is a change of a row: Was nil = it is added, Is nil = it is removed. There is none for a row that was added and
// removed again.
type RowChange[K comparable, R any] struct {
	Key     K
	Was, Is *R
}

// Changes yields the changes that were not flushed, in the order of the first one of each row.
func (t *Table[K, R]) Changes() iter.Seq[RowChange[K, R]] {
	return func(yield func(RowChange[K, R]) bool) {
		for _, key := range t.changed {
			e := t.rows[key]
			if e.was == nil && e.is == nil {
				continue
			}
			if !yield(RowChange[K, R]{key, e.was, e.is}) {
				return
			}
		}
	}
}

// Read is that of [Member].
func (t *Table[K, R]) Read(b *pgx.Batch) {
	if len(t.wanted) == 0 {
		return
	}
	keys := distinct(t.wanted)
	t.wanted = nil
	b.Queue(t.DB.SQL(t.SQL), t.Args(keys)...).Query(func(rows pgx.Rows) error {
		found := make(map[K]*R, len(keys))
		for rows.Next() {
			key, row, err := t.Scan(rows)
			if err != nil {
				return err
			}
			found[key] = &row
		}
		if err := rows.Err(); err != nil {
			return err
		}
		t.learn(keys, found)
		return nil
	})
}

// distinct returns each key once: many changes of a commit may ask for the same one, and finding a row can take more than a
// lookup in an index.
func distinct[K comparable](keys []K) []K {
	if len(keys) < 2 {
		return keys
	}
	seen := make(map[K]struct{}, len(keys))
	return slices.DeleteFunc(keys, func(key K) bool {
		n := len(seen)
		seen[key] = struct{}{}
		return len(seen) == n
	})
}

// learn adds the rows that were read for some keys.
func (t *Table[K, R]) learn(keys []K, found map[K]*R) {
	if t.rows == nil {
		t.rows = make(map[K]*entry[R], len(keys))
	}
	for _, key := range keys {
		if e := t.rows[key]; e == nil {
			row := found[key]
			t.rows[key] = &entry[R]{was: row, is: row, known: true}
			t.bytes += t.weight(row)
		}
	}
}

func (t *Table[K, R]) weight(row *R) int {
	if t.Bytes == nil || row == nil {
		return 0
	}
	return t.Bytes(row)
}

// Flushed is that of [Member].
func (t *Table[K, R]) Flushed() {
	clear(t.rows)
	t.bytes = 0
	t.changed, t.wanted = t.changed[:0], t.wanted[:0]
}

// AfterCommit is that of [Member].
func (t *Table[K, R]) AfterCommit() {
	for _, key := range t.changed {
		e := t.rows[key]
		t.bytes += t.weight(e.is) - t.weight(e.was)
		e.was, e.known, e.changed = e.is, true, false
		if e.is != nil && t.Cold != nil && t.Cold(e.is) {
			t.forget(key)
		}
	}
	t.changed = t.changed[:0]
	t.evict()
}

// evict forgets a quarter of the rows when there are too many. It picks them at random: the next one to be needed may be
// the oldest, as in a queue, or the newest.
func (t *Table[K, R]) evict() {
	if len(t.rows) <= maxRows && t.bytes <= maxRowBytes {
		return
	}
	for key, e := range t.rows {
		if len(t.rows) <= maxRows/4*3 && t.bytes <= maxRowBytes/4*3 {
			return
		}
		if !e.changed {
			t.forget(key)
		}
	}
}

// forget drops a row that has no change.
func (t *Table[K, R]) forget(key K) {
	t.bytes -= t.weight(t.rows[key].is)
	delete(t.rows, key)
}

// AfterRollback is that of [Member].
func (t *Table[K, R]) AfterRollback() {
	for _, key := range t.changed {
		e := t.rows[key]
		if !e.known {
			delete(t.rows, key)
			continue
		}
		e.is, e.changed = e.was, false
	}
	t.changed = t.changed[:0]
}
