package pgqueue

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// KV implements [record.EffectReader].
func (s *Store) KV(ctx context.Context, worker, key string, now record.Millis) (e record.KVEntry, err error) {
	if !storable(worker) || !storable(key) {
		return record.KVEntry{}, record.ErrNoKey(worker, key)
	}
	err = s.ask(ctx, func() { e = record.KVEntry{Key: key} }, []any{&e.Version, &e.Expires, &e.ChangedAt, &e.Value}, func() error { return nil },
		`SELECT version, expires, changed_at, value FROM jobhost.kv
		WHERE worker=(SELECT id FROM jobhost.worker WHERE name=$1) AND key=$2`, worker, key)
	if err != nil {
		return record.KVEntry{}, fmt.Errorf("read key: %w", err)
	}
	if e.Version == 0 || e.Expired(now) {
		return record.KVEntry{}, record.ErrNoKey(worker, key)
	}
	e.Size = len(e.Value)
	return e, nil
}

// KVList implements [record.EffectReader].
func (s *Store) KVList(ctx context.Context, q record.KVQuery) (list []record.KVEntry, err error) {
	if !storable(q.Worker) || !storable(q.Prefix) || !storable(q.After) {
		return nil, nil
	}
	var e record.KVEntry
	err = s.ask(ctx, func() { list = nil }, []any{&e.Key, &e.Version, &e.Expires, &e.ChangedAt, &e.Size}, func() error {
		list = append(list, e)
		return nil
	}, listKeys, q.Worker, max(q.Prefix, q.After), q.After, afterPrefix(q.Prefix), q.Now, max(q.Limit, 0))
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	return list, nil
}

// listKeys has two lower bounds: the key of the prefix itself is in the list, the one that it continues after is not.
const listKeys = `SELECT key, version, expires, changed_at, size FROM jobhost.kv
	WHERE worker=(SELECT id FROM jobhost.worker WHERE name=$1) AND key>=$2 AND key>$3 AND ($4::text='' OR key<$4) AND (expires=0 OR expires>$5)
	ORDER BY key LIMIT $6`

// afterPrefix returns the first text after all those that begin with a prefix; empty = there is none. The bytes of UTF-8 sort
// as its characters do.
func afterPrefix(prefix string) string {
	for prefix != "" {
		r, n := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-n]
		switch r {
		case utf8.MaxRune:
			continue
		case surrogates - 1:
			r = surrogatesEnd
		default:
			r++
		}
		return prefix + string(r)
	}
	return ""
}

// The range without characters.
const (
	surrogates    = 0xD800
	surrogatesEnd = 0xE000
)

// KVSize implements [record.EffectReader].
func (s *Store) KVSize(ctx context.Context, worker string, now record.Millis) (size int64, err error) {
	if !storable(worker) {
		return 0, nil
	}
	err = s.ask(ctx, func() { size = 0 }, []any{&size}, func() error { return nil }, sizeOfKeys, worker, now, record.KVCost("", 0))
	if err != nil {
		return 0, fmt.Errorf("read size of keys: %w", err)
	}
	return size, nil
}

// sizeOfKeys subtracts the keys that have expired and are not removed yet, which are few. The condition on the worker is
// written such that no index is used for it: the planner has to take the index of expiry, not that of all the worker's keys.
const sizeOfKeys = `SELECT bytes-(SELECT coalesce(sum(octet_length(key)+size+$3::bigint), 0) FROM jobhost.kv
		WHERE expires>0 AND expires<=$2 AND worker+0=kv_worker.worker)::bigint
	FROM jobhost.kv_worker WHERE worker=(SELECT id FROM jobhost.worker WHERE name=$1)`

// Family implements [record.EffectReader].
func (s *Store) Family(ctx context.Context, job record.Key) (f record.Family, err error) {
	there := false
	err = s.ask(ctx, func() { f, there = record.Family{}, false }, []any{&f.Depth, &f.Children}, func() error {
		there = true
		return nil
	}, familyOf, job)
	if err == nil && !there {
		err = &jobhost.Error{Code: jobhost.CodeNotFound, Message: "there is no such job any more"}
	}
	if err != nil {
		return record.Family{}, fmt.Errorf("read family: %w", err)
	}
	return f, nil
}

// familyOf counts children with higher keys than the job: those with lower ones belong to an earlier job of that id.
const familyOf = `SELECT coalesce((SELECT depth FROM jobhost.child WHERE child.job=job.seq), 0),
		(SELECT count(*) FROM jobhost.child WHERE parent=job.id AND child.job>job.seq AND parent_key=job.seq)
	FROM jobhost.job WHERE seq=$1`
