package sqlitequeue

import (
	"bytes"
	"strconv"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// keys is what the writer keeps in memory of the workers' keys: what they cost
// and the version of the last change. It is a [sqlitedb.Member].
type keys struct {
	byWorker map[int64]usage
	before   map[int64]usage // of workers that the open transaction changes
	now      record.Millis   // the latest time of its changes
}

type usage struct{ bytes, version int64 }

func newKeys() *keys {
	return &keys{byWorker: make(map[int64]usage), before: make(map[int64]usage)}
}

// load reads what the database holds.
func (k *keys) load(q sqlitedb.Querier) error {
	s := q.Stmt("SELECT worker, bytes, version FROM kv_worker")
	for s.Step() {
		k.byWorker[s.ColInt(0)] = usage{bytes: s.ColInt(1), version: s.ColInt(2)}
	}
	return s.Done()
}

// set notes the usage of a worker after a change.
func (k *keys) set(worker int64, u usage) {
	if _, changed := k.before[worker]; !changed {
		k.before[worker] = k.byWorker[worker]
	}
	k.byWorker[worker] = u
}

// mostExpired bounds how many expired keys a transaction that changes keys
// removes besides: more than it can add, so that they don't pile up.
const mostExpired = 4096

// BeforeCommit implements [sqlitedb.Member].
func (k *keys) BeforeCommit(tx *sqlitedb.Tx) error {
	err := k.remove(tx.Stmt(`DELETE FROM kv WHERE id IN (SELECT id FROM kv WHERE expires>0 AND expires<=? LIMIT ?)
		RETURNING worker, length(CAST(key AS BLOB)), size`).Int(int64(k.now)).Int(mostExpired))
	if err != nil {
		return err
	}
	for worker := range k.before {
		u := k.byWorker[worker]
		err := tx.Stmt(`INSERT INTO kv_worker(worker, bytes, version) VALUES(?,?,?)
			ON CONFLICT DO UPDATE SET bytes=excluded.bytes, version=excluded.version`).
			Int(worker).Int(u.bytes).Int(u.version).Exec()
		if err != nil {
			return err
		}
	}
	return nil
}

// remove runs a deletion that returns the worker of each key, its length and
// that of its value.
func (k *keys) remove(s *sqlitedb.Stmt) error {
	for s.Step() {
		worker := s.ColInt(0)
		u := k.byWorker[worker]
		u.bytes -= record.KVCost("", int(s.ColInt(1)+s.ColInt(2)))
		k.set(worker, u)
	}
	return s.Done()
}

// AfterCommit implements [sqlitedb.Member].
func (k *keys) AfterCommit() { k.forget() }

// AfterRollback implements [sqlitedb.Member].
func (k *keys) AfterRollback() {
	for worker, u := range k.before {
		k.byWorker[worker] = u
	}
	k.forget()
}

func (k *keys) forget() {
	clear(k.before)
	k.now = 0
}

// keyChange is a change of a key that was looked at: what to write.
type keyChange struct {
	*record.KVChange
	id      int64 // of the row that is there; 0 = none
	value   []byte
	expires int64
	growth  int64 // of the worker's cost
}

// changeKV changes keys of a worker, or records in res why it can't.
func (l *ledger) changeKV(tx *sqlitedb.Tx, worker int64, changes []record.KVChange, at record.Millis, quota int64, res *record.OpResult) error {
	if len(changes) == 0 {
		return nil
	}
	k := l.keys
	tx.Join(k)
	k.now = max(k.now, at)
	plan, growth, err := planKV(tx, worker, changes, at, res)
	if err != nil || res.Err != nil {
		return err
	}
	if quota > 0 && k.byWorker[worker].bytes+growth > quota {
		// What has expired must not count. This is rare: usually it is removed early enough.
		if err := k.expire(tx, worker, at); err != nil {
			return err
		}
		if plan, growth, err = planKV(tx, worker, changes, at, res); err != nil {
			return err
		}
		if growth > 0 && k.byWorker[worker].bytes+growth > quota {
			res.Err = record.ErrQuota(l.names[worker], quota)
			return nil
		}
	}
	u := k.byWorker[worker]
	u.bytes += growth
	for i := range plan {
		if plan[i].Kind != record.KVDelete {
			u.version++
		}
		if err := plan[i].write(tx, worker, u.version, at); err != nil {
			return err
		}
	}
	k.set(worker, u)
	return nil
}

// expire removes all expired keys of a worker.
func (k *keys) expire(tx *sqlitedb.Tx, worker int64, at record.Millis) error {
	return k.remove(tx.Stmt(`DELETE FROM kv WHERE worker=? AND expires>0 AND expires<=?
		RETURNING worker, length(CAST(key AS BLOB)), size`).Int(worker).Int(int64(at)))
}

// planKV looks at what is there of the keys, and what their changes make of it.
func planKV(tx *sqlitedb.Tx, worker int64, changes []record.KVChange, at record.Millis, res *record.OpResult) ([]keyChange, int64, error) {
	plan, growth := make([]keyChange, len(changes)), int64(0)
	for i := range changes {
		p := &plan[i]
		p.KVChange = &changes[i]
		refusal, err := p.look(tx, worker, at)
		if err != nil {
			return nil, 0, err
		}
		if refusal != nil {
			res.Err = refusal
			return nil, 0, nil //nolint:nilerr // a refusal is an answer
		}
		growth += p.growth
	}
	return plan, growth, nil
}

// look reads the key and works out its change. A key that has expired counts as
// gone, but its row is there to be used.
func (c *keyChange) look(tx *sqlitedb.Tx, worker int64, at record.Millis) (refusal, err error) {
	s := tx.Stmt("SELECT id, version, expires, size, CASE WHEN ?1 THEN value END, CASE WHEN ?1 THEN sum END, changed_at FROM kv WHERE worker=?2 AND key=?3").
		Int(b2i(c.Kind == record.KVAdd)).Int(worker).Text(c.Key)
	var version int64
	var value []byte
	whole := true
	if s.Step() {
		c.id, c.growth = s.ColInt(0), -record.KVCost(c.Key, int(s.ColInt(3)))
		if there := (record.KVEntry{Expires: record.Millis(s.ColInt(2))}); !there.Expired(at) {
			version, c.expires, value = s.ColInt(1), s.ColInt(2), s.ColBlob(4)
			if value == nil {
				value = []byte{}
			}
			whole = s.ColSum(5, kvSum(worker, c.Key, version, c.expires, s.ColInt(6), value))
		}
	}
	if err := s.Done(); err != nil {
		return nil, err
	}
	if c.Checked && c.Version != version {
		return record.ErrVersion(c.Key), nil
	}
	switch c.Kind {
	case record.KVDelete:
		return nil, nil
	case record.KVAdd:
		if !whole {
			return damagedKey(c.Key), nil
		}
		sum, ok := record.AddNumber(value, c.Delta)
		if !ok {
			return record.ErrNoNumber(c.Key), nil
		}
		c.value = strconv.AppendInt(nil, sum, 10)
	default:
		c.value, c.expires = c.Value, int64(c.Expires)
	}
	c.growth += record.KVCost(c.Key, len(c.value))
	return nil, nil
}

// write makes the change.
func (c *keyChange) write(tx *sqlitedb.Tx, worker, version int64, at record.Millis) error {
	switch {
	case c.Kind == record.KVDelete && c.id == 0:
		return nil
	case c.Kind == record.KVDelete:
		return tx.Stmt("DELETE FROM kv WHERE id=?").Int(c.id).Exec()
	}
	sum := kvSum(worker, c.Key, version, c.expires, int64(at), c.value)
	if c.id == 0 {
		return tx.Stmt("INSERT INTO kv(worker, key, version, expires, changed_at, size, value, sum) VALUES(?,?,?,?,?,?,?,?)").
			Int(worker).Text(c.Key).Int(version).Int(c.expires).Int(int64(at)).Int(int64(len(c.value))).Blob(c.value).Int(sum).Exec()
	}
	return tx.Stmt("UPDATE kv SET version=?, expires=?, changed_at=?, size=?, value=?, sum=? WHERE id=?").
		Int(version).Int(c.expires).Int(int64(at)).Int(int64(len(c.value))).Blob(c.value).Int(sum).Int(c.id).Exec()
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// prefixEnd returns the first text that is after all those that begin with
// prefix; empty = there is none.
func prefixEnd(prefix string) string {
	end := bytes.TrimRight([]byte(prefix), "\xff")
	if len(end) == 0 {
		return ""
	}
	end[len(end)-1]++
	return string(end)
}
