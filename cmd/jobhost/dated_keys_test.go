package main

import (
	"context"
	"time"

	"github.com/jobhost/jobhost"
)

// datedKeys are keys of a host as if they had been set at [testTime]. The worker
// "hostile" has one whose name is for no terminal, which a host would refuse.
type datedKeys struct{ jobhost.KeyKeeper }

func (d datedKeys) Keys(ctx context.Context, f jobhost.KeyFilter) (jobhost.KeyPage, error) {
	if f.Worker == "hostile" {
		return jobhost.KeyPage{Keys: []jobhost.Key{{Name: hostile, Version: 1}}}, nil
	}
	page, err := d.KeyKeeper.Keys(ctx, f)
	for i := range page.Keys {
		date(&page.Keys[i])
	}
	return page, err
}

func (d datedKeys) KeyValue(ctx context.Context, worker, name string) (jobhost.Key, []byte, error) {
	key, value, err := d.KeyKeeper.KeyValue(ctx, worker, name)
	date(&key)
	return key, value, err
}

// date moves a change to [testTime], and the end of the key with it.
func date(key *jobhost.Key) {
	if key.ExpiresAt != nil {
		at := testTime.Add(key.ExpiresAt.Sub(key.ChangedAt).Round(time.Hour))
		key.ExpiresAt = &at
	}
	key.ChangedAt = testTime
}
