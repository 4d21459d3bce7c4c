package sqlitequeue

import (
	"context"
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// KV implements [queue.EffectReader].
func (s *Store) KV(ctx context.Context, worker, key string, now record.Millis) (record.KVEntry, error) {
	e := record.KVEntry{Key: key}
	err := s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		st := r.Stmt(`SELECT version, expires, changed_at, value, sum, worker FROM kv
			WHERE worker=(SELECT id FROM worker WHERE name=?) AND key=?`).Text(worker).Text(key)
		if st.Step() {
			e.Version, e.Expires, e.ChangedAt = st.ColInt(0), record.Millis(st.ColInt(1)), record.Millis(st.ColInt(2))
			e.Value = st.ColBlob(3)
			e.Size = len(e.Value)
			if !st.ColSum(4, kvSum(st.ColInt(5), key, e.Version, int64(e.Expires), int64(e.ChangedAt), e.Value)) {
				return damagedKey(key)
			}
		}
		return st.Done()
	})
	if err != nil {
		return record.KVEntry{}, fmt.Errorf("read key: %w", err)
	}
	if e.Version == 0 || e.Expired(now) {
		return record.KVEntry{}, record.ErrNoKey(worker, key)
	}
	return e, nil
}

func damagedKey(key string) error { return sqlitedb.Damaged("the value of key %q", key) }

// KVList implements [queue.EffectReader].
func (s *Store) KVList(ctx context.Context, q record.KVQuery) ([]record.KVEntry, error) {
	var list []record.KVEntry
	err := s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		worker, err := workerID(r, q.Worker)
		if worker == 0 || err != nil {
			return err
		}
		// Two bounds from below, since a list begins with the prefix itself.
		st := r.Stmt(`SELECT key, version, expires, changed_at, size FROM kv
			WHERE worker=?1 AND key>=?2 AND key>?3 AND (?4='' OR key<?4) AND (expires=0 OR expires>?5)
			ORDER BY key LIMIT ?6`).
			Int(worker).Text(max(q.Prefix, q.After)).Text(q.After).Text(prefixEnd(q.Prefix)).Int(int64(q.Now)).Int(int64(max(q.Limit, 0)))
		for st.Step() {
			list = append(list, record.KVEntry{
				Key: st.ColText(0), Version: st.ColInt(1), Expires: record.Millis(st.ColInt(2)),
				ChangedAt: record.Millis(st.ColInt(3)), Size: int(st.ColInt(4)),
			})
		}
		return st.Done()
	})
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	return list, nil
}

// KVSize implements [queue.EffectReader].
func (s *Store) KVSize(ctx context.Context, worker string, now record.Millis) (int64, error) {
	var size int64
	err := s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		id, err := workerID(r, worker)
		if id == 0 || err != nil {
			return err
		}
		st := r.Stmt(`SELECT bytes - (SELECT coalesce(sum(length(CAST(key AS BLOB))+size+?1), 0) FROM kv INDEXED BY kv_expires
				WHERE expires>0 AND expires<=?2 AND worker=?3)
			FROM kv_worker WHERE worker=?3`).Int(record.KVCost("", 0)).Int(int64(now)).Int(id)
		if st.Step() {
			size = st.ColInt(0)
		}
		return st.Done()
	})
	if err != nil {
		return 0, fmt.Errorf("read size of keys: %w", err)
	}
	return size, nil
}

// Family implements [queue.EffectReader].
func (s *Store) Family(ctx context.Context, job record.Key) (record.Family, error) {
	var f record.Family
	err := s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		st := r.Stmt("SELECT id, (SELECT depth FROM child WHERE child.job=job.seq) FROM job WHERE seq=?").Int(int64(job))
		if !st.Step() {
			if err := st.Done(); err != nil {
				return err
			}
			return &jobhost.Error{Code: jobhost.CodeNotFound, Message: "there is no such job any more"}
		}
		id := st.ColText(0)
		f.Depth = int(st.ColInt(1))
		if err := st.Done(); err != nil {
			return err
		}
		var err error
		f.Children, err = children(r, id, int64(job))
		return err
	})
	if err != nil {
		return record.Family{}, fmt.Errorf("read family: %w", err)
	}
	return f, nil
}
