package host

import (
	"context"
	"time"

	"github.com/jobhost/jobhost"
)

// Keys implements [jobhost.KeyKeeper].
func (h *Host) Keys(ctx context.Context, filter jobhost.KeyFilter) (jobhost.KeyPage, error) {
	q, err := h.queue()
	if err != nil {
		return jobhost.KeyPage{}, err
	}
	return q.Keys(ctx, filter)
}

// KeyValue implements [jobhost.KeyKeeper].
func (h *Host) KeyValue(ctx context.Context, worker, key string) (jobhost.Key, []byte, error) {
	q, err := h.queue()
	if err != nil {
		return jobhost.Key{}, nil, err
	}
	return q.KeyValue(ctx, worker, key)
}

// SetKey implements [jobhost.KeyKeeper].
func (h *Host) SetKey(ctx context.Context, worker, key string, value []byte, ttl time.Duration) error {
	q, err := h.queue()
	if err != nil {
		return err
	}
	return q.SetKey(ctx, worker, key, value, ttl)
}

// DeleteKey implements [jobhost.KeyKeeper].
func (h *Host) DeleteKey(ctx context.Context, worker, key string) error {
	q, err := h.queue()
	if err != nil {
		return err
	}
	return q.DeleteKey(ctx, worker, key)
}
