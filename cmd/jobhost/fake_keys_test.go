package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
)

// Keys of worker wordcount; that of every other worker is hostile.
func (s *fakeServer) Keys(_ context.Context, f jobhost.KeyFilter) (jobhost.KeyPage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Worker != "wordcount" {
		return jobhost.KeyPage{Keys: []jobhost.Key{{Name: hostile, Version: 1}}}, nil
	}
	var page jobhost.KeyPage
	for _, name := range slices.Sorted(maps.Keys(s.keys)) {
		switch {
		case name <= f.Cursor || !strings.HasPrefix(name, f.Prefix):
		case len(page.Keys) == f.Limit:
			page.Next = page.Keys[f.Limit-1].Name
			return page, nil
		default:
			page.Keys = append(page.Keys, s.keys[name].Key)
		}
	}
	return page, nil
}

func (s *fakeServer) KeyValue(_ context.Context, worker, key string) (jobhost.Key, []byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, there := s.keys[key]
	if !there {
		return jobhost.Key{}, nil, &jobhost.Error{Code: jobhost.CodeNotFound, Message: fmt.Sprintf("worker %s has no key %q", worker, key)}
	}
	return k.Key, k.Value, nil
}

func (s *fakeServer) SetKey(_ context.Context, _, key string, value []byte, ttl time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys == nil {
		s.keys = map[string]keyWithValue{}
	}
	k := keyWithValue{Value: value, Key: jobhost.Key{Name: key, Size: len(value), Version: int64(len(s.keys) + 1), ChangedAt: testTime}}
	if ttl > 0 {
		at := testTime.Add(ttl)
		k.ExpiresAt = &at
	}
	s.keys[key] = k
	return nil
}

func (s *fakeServer) DeleteKey(ctx context.Context, worker, key string) error {
	if _, _, err := s.KeyValue(ctx, worker, key); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.keys, key)
	return nil
}
