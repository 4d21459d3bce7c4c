package pgqueue

import (
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// keyRows are the keys that changes look at, and the cost of all keys of each worker. It is a [pgdb.Member].
type keyRows struct {
	db      *pgdb.DB
	rows    pgdb.Table[kvKey, kvRow]
	overdue pgdb.Table[overdue, overdueKeys]

	usage    map[int64]usage
	earliest int64 // the least earliest of all workers
	settled  int64 // earliest, as of the last commit
	// Of this commit:
	before  map[int64]usage // usage of the workers that it has changed, before
	unsaved map[int64]bool  // workers whose usage was not flushed
}

// kvKey names a key of a worker.
type kvKey struct {
	worker int64
	name   string
}

// kvRow is a row of the table of keys, without the value: all that changes have to know of it is the number in it.
type kvRow struct {
	version, expires, changedAt, size int64
	number                            []byte // see numberOf
	value                             []byte // only of a row that is to be written
}

// cost is how much of the quota the key takes.
func (r *kvRow) cost(key string) int64 { return record.KVCost(key, int(r.size)) }

// expired reports whether the key has expired.
func (r *kvRow) expired(at int64) bool { return r.expires != 0 && r.expires <= at }

// usage is the cost of a worker's keys, expired ones included, and the version of the last change.
type usage struct {
	bytes, version int64
	earliest       int64 // no key expires before it
}

// overdue stands for keys of a worker that have expired by a time, most of them at most.
type overdue struct{ worker, at, most int64 }

// overdueKeys are such keys, and the time when the next one expires.
type overdueKeys struct {
	names []string
	next  int64
}

func (k *keyRows) init(db *pgdb.DB) {
	k.db = db
	k.usage, k.before, k.unsaved = map[int64]usage{}, map[int64]usage{}, map[int64]bool{}
	k.rows = pgdb.Table[kvKey, kvRow]{
		DB: db,
		// A number has up to 20 bytes, or leading zeros.
		SQL: `SELECT kv.worker, kv.key, version, expires, size,
				CASE WHEN size<=20 OR substring(value FROM 2 FOR 1)='0' THEN value ELSE '' END
			FROM unnest($1::bigint[], $2::text[]) AS t(worker, key) JOIN jobhost.kv ON kv.worker=t.worker AND kv.key=t.key`,
		Args: func(keys []kvKey) []any { return kvArgs(keys) },
		Scan: func(rows pgx.Rows) (key kvKey, r kvRow, err error) {
			var value []byte
			err = rows.Scan(&key.worker, &key.name, &r.version, &r.expires, &r.size, &value)
			r.number = numberOf(value)
			return key, r, err
		},
	}
	k.overdue = pgdb.Table[overdue, overdueKeys]{
		DB: db,
		SQL: `SELECT worker, at, most,
				ARRAY(SELECT key FROM jobhost.kv WHERE kv.worker=t.worker AND expires>0 AND expires<=t.at ORDER BY expires LIMIT t.most),
				coalesce((SELECT min(expires) FROM jobhost.kv WHERE kv.worker=t.worker AND expires>0 AND expires>t.at), $4)
			FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS t(worker, at, most)`,
		Args: func(list []overdue) []any {
			of := func(of func(*overdue) int64) []int64 { return column(list, of) }
			return []any{
				of(func(o *overdue) int64 { return o.worker }), of(func(o *overdue) int64 { return o.at }),
				of(func(o *overdue) int64 { return o.most }), int64(never),
			}
		},
		Scan: func(rows pgx.Rows) (o overdue, keys overdueKeys, err error) {
			err = rows.Scan(&o.worker, &o.at, &o.most, &keys.names, &keys.next)
			return o, keys, err
		},
	}
}

func kvArgs(keys []kvKey) []any {
	return []any{column(keys, func(k *kvKey) int64 { return k.worker }), column(keys, func(k *kvKey) string { return k.name })}
}

// load reads the usage of all workers. When keys expire is left open; the first change of a key finds out.
func (k *keyRows) load(s *pgdb.Session) error {
	var worker int64
	var u usage
	return s.Each([]any{&worker, &u.bytes, &u.version}, func() error {
		k.usage[worker] = u
		return nil
	}, "SELECT worker, bytes, version FROM jobhost.kv_worker")
}

// of returns the usage of a worker.
func (k *keyRows) of(worker int64) usage {
	if u, known := k.usage[worker]; known {
		return u
	}
	return usage{earliest: never}
}

// set notes the usage of a worker after a change.
func (k *keyRows) set(worker int64, u usage) {
	if _, changed := k.before[worker]; !changed {
		k.before[worker] = k.of(worker)
	}
	k.usage[worker] = u
	k.unsaved[worker] = true
}

const (
	// never is the time of expiry of keys that don't expire.
	never = math.MaxInt64
	// allKeys is more keys than a worker can have.
	allKeys = math.MaxInt64
	// sweepLag is for how many milliseconds expired keys are left, so that not every commit looks for some.
	sweepLag = 1000
	// maxSwept is about how many expired keys a commit removes: more than it can add, so that they don't pile up.
	maxSwept = 4096
)

// sweep removes keys that expired some time ago.
func (k *keyRows) sweep(tx *pgdb.Tx, now int64) {
	at := now - sweepLag
	if k.earliest > at {
		return
	}
	var due []int64
	for worker, u := range k.usage {
		if u.earliest <= at {
			due = append(due, worker)
		}
	}
	most := int64(maxSwept/max(len(due), 1) + 1)
	for _, worker := range due {
		k.expire(tx, overdue{worker, at, most})
	}
	k.earliest = never
	for _, u := range k.usage {
		k.earliest = min(k.earliest, u.earliest)
	}
}

// expire removes expired keys.
func (k *keyRows) expire(tx *pgdb.Tx, o overdue) {
	found := k.overdue.Get(tx, o)
	if found == nil {
		return
	}
	k.want(tx, o.worker, found.names)
	if tx.Missed() {
		return
	}
	u := k.of(o.worker)
	for _, name := range found.names {
		key := kvKey{o.worker, name}
		// This commit may have changed the key.
		if row := k.rows.Get(tx, key); row != nil && row.expired(o.at) {
			u.bytes -= row.cost(name)
			k.rows.Delete(key)
		}
	}
	if _, changed := k.before[o.worker]; !changed && int64(len(found.names)) < o.most {
		u.earliest = found.next // it does not include keys that this commit has changed
	}
	k.set(o.worker, u)
}

// want asks for keys of a worker.
func (k *keyRows) want(tx *pgdb.Tx, worker int64, names []string) {
	k.rows.Want(tx, column(names, func(name *string) kvKey { return kvKey{worker, *name} }))
}

// Read implements [pgdb.Member].
func (k *keyRows) Read(b *pgx.Batch) {
	k.rows.Read(b)
	k.overdue.Read(b)
}

// Flush implements [pgdb.Member].
func (k *keyRows) Flush(b *pgx.Batch) error {
	var gone, keys []kvKey
	var rows []kvRow
	for c := range k.rows.Changes() {
		if c.Is == nil {
			gone = append(gone, c.Key)
		} else {
			keys, rows = append(keys, c.Key), append(rows, *c.Is)
		}
	}
	if len(gone) > 0 {
		b.Queue(k.db.SQL(`DELETE FROM jobhost.kv USING unnest($1::bigint[], $2::text[]) AS t(worker, key)
			WHERE kv.worker=t.worker AND kv.key=t.key`), kvArgs(gone)...).Exec(expect(len(gone), "keys"))
	}
	if len(keys) > 0 {
		number := func(of func(*kvRow) int64) []int64 { return column(rows, of) }
		b.Queue(k.db.SQL(`INSERT INTO jobhost.kv (worker, key, version, expires, changed_at, size, value)
			SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bytea[])
			ON CONFLICT (worker, key) DO UPDATE SET version=excluded.version, expires=excluded.expires,
			changed_at=excluded.changed_at, size=excluded.size, value=excluded.value`),
			append(kvArgs(keys), number(func(r *kvRow) int64 { return r.version }), number(func(r *kvRow) int64 { return r.expires }),
				number(func(r *kvRow) int64 { return r.changedAt }), number(func(r *kvRow) int64 { return r.size }),
				column(rows, func(r *kvRow) []byte { return r.value }))...)
	}
	k.flushUsage(b)
	return nil
}

func (k *keyRows) flushUsage(b *pgx.Batch) {
	if len(k.unsaved) == 0 {
		return
	}
	var workers, bytes, versions []int64
	for worker := range k.unsaved {
		u := k.usage[worker]
		workers, bytes, versions = append(workers, worker), append(bytes, u.bytes), append(versions, u.version)
	}
	b.Queue(k.db.SQL(`INSERT INTO jobhost.kv_worker (worker, bytes, version) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[])
		ON CONFLICT (worker) DO UPDATE SET bytes=excluded.bytes, version=excluded.version`), workers, bytes, versions)
}

// Flushed implements [pgdb.Member].
func (k *keyRows) Flushed() {
	k.rows.Flushed()
	k.overdue.Flushed()
	clear(k.unsaved)
}

// AfterCommit implements [pgdb.Member].
func (k *keyRows) AfterCommit() {
	for c := range k.rows.Changes() {
		if c.Is != nil {
			c.Is.value = nil // it is not needed any more
		}
	}
	k.rows.AfterCommit()
	k.overdue.Flushed() // they are not found again
	k.settled = k.earliest
	clear(k.before)
	clear(k.unsaved)
}

// AfterRollback implements [pgdb.Member].
func (k *keyRows) AfterRollback() {
	k.rows.AfterRollback()
	k.overdue.AfterRollback()
	for worker, u := range k.before {
		k.usage[worker] = u
	}
	k.earliest = k.settled
	clear(k.before)
	clear(k.unsaved)
}
