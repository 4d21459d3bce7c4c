package redispayload

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

var (
	errNoFile = errors.New("the server has no append-only file: set appendonly yes, or durable = false for this store")
	errNoSync = errors.New("the server doesn't sync before it answers: set appendfsync always, use Redis 7.2, or set durable = false for this store")
)

// sync waits until what was written on a connection is on the server's disk.
// Servers before 7.2 can't be told to wait; there it must be what they do anyway.
func (s *Store) sync(ctx context.Context, conn *redis.Conn) error {
	if s.always.Load() {
		return nil
	}
	synced, err := conn.WaitAOF(ctx, 1, 0, syncWithin).Result()
	switch {
	case err == nil && len(synced) > 0 && synced[0] > 0:
		return nil
	case err == nil:
		return fmt.Errorf("the server has not synced its append-only file within %v", syncWithin)
	case strings.Contains(err.Error(), "appendonly is disabled"):
		return errNoFile
	case !strings.Contains(err.Error(), "unknown command"):
		return err
	}
	file, err := conn.ConfigGet(ctx, "appendonly").Result()
	if err != nil {
		return err
	}
	if file["appendonly"] != "yes" {
		return errNoFile
	}
	when, err := conn.ConfigGet(ctx, "appendfsync").Result()
	if err != nil {
		return err
	}
	if when["appendfsync"] != "always" {
		return errNoSync
	}
	s.always.Store(true)
	return nil
}
