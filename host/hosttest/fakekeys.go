package hosttest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
)

// fakeKey is a key of the fake's worker. None expires.
type fakeKey struct {
	jobhost.Key
	value []byte
}

// Keys implements [jobhost.KeyKeeper].
func (f *Fake) Keys(_ context.Context, filter jobhost.KeyFilter) (jobhost.KeyPage, error) {
	if err := filter.Check(); err != nil {
		return jobhost.KeyPage{}, err
	}
	if filter.Limit == 0 {
		filter.Limit = 50
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	page := jobhost.KeyPage{Keys: []jobhost.Key{}}
	if filter.Worker != FakeWorker {
		return page, nil
	}
	for _, name := range slices.Sorted(maps.Keys(f.keys)) {
		if name <= filter.Cursor || !strings.HasPrefix(name, filter.Prefix) {
			continue
		}
		if n := len(page.Keys); n == filter.Limit {
			page.Next = page.Keys[n-1].Name
			break
		}
		page.Keys = append(page.Keys, f.keys[name].Key)
	}
	return page, nil
}

// KeyValue implements [jobhost.KeyKeeper].
func (f *Fake) KeyValue(_ context.Context, worker, key string) (jobhost.Key, []byte, error) {
	if err := jobhost.CheckKey(key); err != nil {
		return jobhost.Key{}, nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	k, there := f.keys[key]
	if worker != FakeWorker || !there {
		return jobhost.Key{}, nil, problem(jobhost.CodeNotFound, "key", "worker %s has no key %q", worker, key)
	}
	return k.Key, slices.Clone(k.value), nil
}

// SetKey implements [jobhost.KeyKeeper].
func (f *Fake) SetKey(_ context.Context, worker, key string, value []byte, ttl time.Duration) error {
	for _, err := range []error{jobhost.CheckNotReserved(worker), jobhost.CheckKey(key), jobhost.CheckValue(value, ttl)} {
		if err != nil {
			return err
		}
	}
	if worker != FakeWorker {
		return problem(jobhost.CodeNotFound, "worker", "there is no worker %q", worker)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version++
	k := fakeKey{value: slices.Clone(value)}
	k.Key = jobhost.Key{Name: key, Size: len(value), Version: f.version, ChangedAt: time.Now().UTC()}
	if ttl > 0 {
		at := k.ChangedAt.Add(ttl)
		k.ExpiresAt = &at
	}
	f.keys[key] = k
	return nil
}

// DeleteKey implements [jobhost.KeyKeeper].
func (f *Fake) DeleteKey(ctx context.Context, worker, key string) error {
	if _, _, err := f.KeyValue(ctx, worker, key); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.keys, key)
	return nil
}
