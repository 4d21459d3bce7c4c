package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// Key returns a key of a worker, as it was last committed.
func (q *Queue) Key(ctx context.Context, worker, key string) (record.KVEntry, error) {
	if err := errors.Join(jobhost.CheckWorker(worker), jobhost.CheckKey(key)); err != nil {
		return record.KVEntry{}, err
	}
	return q.store.KV(ctx, worker, key, record.MillisOf(q.clock.now()))
}

// KeySize returns what the keys of a worker cost together.
func (q *Queue) KeySize(ctx context.Context, worker string) (int64, error) {
	return q.store.KVSize(ctx, worker, record.MillisOf(q.clock.now()))
}

// Family returns a job's place among parents and children.
func (q *Queue) Family(ctx context.Context, job record.Key) (record.Family, error) {
	return q.store.Family(ctx, job)
}

// Keys lists keys of a worker.
func (q *Queue) Keys(ctx context.Context, filter jobhost.KeyFilter) (jobhost.KeyPage, error) {
	if err := filter.Check(); err != nil {
		return jobhost.KeyPage{}, err
	}
	query := record.KVQuery{
		Worker: filter.Worker, Prefix: filter.Prefix, After: filter.Cursor,
		Limit: filter.Limit, Now: record.MillisOf(q.clock.now()),
	}
	if query.Limit == 0 {
		query.Limit = 50
	}
	limit := query.Limit
	query.Limit++ // one more shows whether there is another page
	list, err := q.store.KVList(ctx, query)
	if err != nil {
		return jobhost.KeyPage{}, fmt.Errorf("list keys: %w", err)
	}
	page := jobhost.KeyPage{Keys: make([]jobhost.Key, 0, min(len(list), limit))}
	for i := range list {
		if i == limit {
			page.Next = list[i-1].Key
			break
		}
		page.Keys = append(page.Keys, describeKey(&list[i]))
	}
	return page, nil
}

// KeyValue returns a key with its value.
func (q *Queue) KeyValue(ctx context.Context, worker, key string) (jobhost.Key, []byte, error) {
	e, err := q.Key(ctx, worker, key)
	if err != nil {
		return jobhost.Key{}, nil, err
	}
	return describeKey(&e), e.Value, nil
}

func describeKey(e *record.KVEntry) jobhost.Key {
	return jobhost.Key{
		Name: e.Key, Size: e.Size, Version: e.Version, ChangedAt: e.ChangedAt.Time(), ExpiresAt: timeOrNil(e.Expires),
	}
}

// SetKey sets a key of a worker, for ttl; 0 = for good. No quota keeps people
// from it.
func (q *Queue) SetKey(ctx context.Context, worker, key string, value []byte, ttl time.Duration) error {
	if err := errors.Join(jobhost.CheckWorker(worker), jobhost.CheckNotReserved(worker), jobhost.CheckKey(key), jobhost.CheckValue(value, ttl)); err != nil {
		return err
	}
	if l := q.lanes.of(worker); l == nil || l.parked.Load() {
		return q.noWorker(worker)
	}
	return q.ChangeKey(ctx, worker, 0, record.KVChange{Key: key, Value: value, Expires: q.Expiry(ttl)})
}

// Expiry is when something set now for ttl expires; 0 = never.
func (q *Queue) Expiry(ttl time.Duration) record.Millis {
	if ttl == 0 {
		return 0
	}
	return record.MillisOf(q.clock.now().Add(max(ttl, time.Millisecond)))
}

// DeleteKey removes a key of a worker; not_found if there is none.
func (q *Queue) DeleteKey(ctx context.Context, worker, key string) error {
	if _, err := q.Key(ctx, worker, key); err != nil {
		return err
	}
	return q.ChangeKey(ctx, worker, 0, record.KVChange{Key: key, Kind: record.KVDelete})
}

// ChangeKey makes a change of a key of a worker durable. What all keys of the
// worker cost together stays within a quota; 0 = there is none. Errors: conflict,
// exhausted.
func (q *Queue) ChangeKey(ctx context.Context, worker string, quota int64, change record.KVChange) error {
	op := &record.ChangeKV{Worker: worker, At: record.MillisOf(q.clock.now()), Changes: []record.KVChange{change}, Quota: quota}
	if err := q.commitOne(ctx, op, func(record.OpResult) {}); err != nil {
		return fmt.Errorf("change key: %w", err)
	}
	return nil
}
