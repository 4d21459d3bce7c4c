package redispayload

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/jobhost/jobhost/state/payload"
)

var _ payload.Marker = (*Store)(nil)

// markName is the name of a mark, which is none of an object.
func (s *Store) markName(name string) string { return s.cfg.Prefix + "{mark}" + name }

// SetMark implements [payload.Marker].
func (s *Store) SetMark(ctx context.Context, name string, text []byte) error {
	if err := payload.CheckName(name); err != nil {
		return err
	}
	return s.client.Set(ctx, s.markName(name), text, s.cfg.TTL).Err()
}

// Mark implements [payload.Marker].
func (s *Store) Mark(ctx context.Context, name string) ([]byte, error) {
	text, err := s.client.Get(ctx, s.markName(name)).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, payload.ErrNotFound
	}
	return text, err
}
