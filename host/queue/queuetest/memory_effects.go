package queuetest

import (
	"context"
	"maps"
	"slices"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// Gone implements [queue.ObjectReader].
func (s *Memory) Gone(ctx context.Context, after string, limit int) (out []string, err error) {
	err = s.read(ctx, func() error {
		out = slices.Sorted(maps.Values(s.model.gone))
		out = slices.DeleteFunc(out, func(ref string) bool { return ref <= after })
		out = out[:min(len(out), limit)]
		return nil
	})
	return out, err
}

// Live implements [queue.ObjectReader].
func (s *Memory) Live(ctx context.Context, names []string) (out []bool, err error) {
	err = s.read(ctx, func() error {
		for _, name := range names {
			out = append(out, s.model.objects[name] != "")
		}
		return nil
	})
	return out, err
}

// KV implements [queue.EffectReader].
func (s *Memory) KV(ctx context.Context, worker, key string, now record.Millis) (out record.KVEntry, err error) {
	err = s.read(ctx, func() error {
		e, ok := s.model.live(worker, now)[key]
		if !ok {
			return record.ErrNoKey(worker, key)
		}
		out = e
		return nil
	})
	return out, err
}

// KVList implements [queue.EffectReader].
func (s *Memory) KVList(ctx context.Context, q record.KVQuery) (out []record.KVEntry, err error) {
	err = s.read(ctx, func() error {
		out = s.model.listKV(q)
		return nil
	})
	return out, err
}

// KVSize implements [queue.EffectReader].
func (s *Memory) KVSize(ctx context.Context, worker string, now record.Millis) (size int64, err error) {
	err = s.read(ctx, func() error {
		size = costOf(s.model.live(worker, now))
		return nil
	})
	return size, err
}

// Family implements [queue.EffectReader].
func (s *Memory) Family(ctx context.Context, job record.Key) (out record.Family, err error) {
	err = s.read(ctx, func() error {
		f, ok := s.model.family(job)
		if !ok {
			return s.model.code(jobhost.CodeNotFound).Err
		}
		out = f
		return nil
	})
	return out, err
}
