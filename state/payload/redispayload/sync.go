package redispayload

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/jobhost/jobhost/internal/logkey"
)

var (
	errNoFile = errors.New("the server has no append-only file: set appendonly yes, or durable = false for this store")
	errNoSync = errors.New("the server doesn't sync before it answers: set appendfsync always, use Redis 7.2, or set durable = false for this store")
)

// sync waits until what was written on a connection is on the server's disk.
// Servers before 7.2 can't be asked to wait; there it must be what they do anyway.
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

// errEvicts is for a server that removes what has no time to live.
var errEvicts = errors.New("the server removes objects when its memory is full: set maxmemory-policy noeviction")

// checkKeeps looks once whether the server keeps what it was given. One that doesn't
// say is believed to. Policies that remove only what expires are no danger: the pieces of
// an upload do, and it fails without them.
func (s *Store) checkKeeps(ctx context.Context) error {
	if s.keeps.Load() {
		return nil
	}
	policy, err := s.client.ConfigGet(ctx, "maxmemory*").Result()
	if _, answered := errors.AsType[redis.Error](err); answered {
		s.cfg.Logger.Warn("the payload redis doesn't tell its settings; see to it that its maxmemory-policy is noeviction", logkey.Error, err)
		s.keeps.Store(true)
		return nil
	}
	if err != nil {
		return err
	}
	if strings.HasPrefix(policy["maxmemory-policy"], "allkeys-") && policy["maxmemory"] != "0" {
		return errEvicts
	}
	s.keeps.Store(true)
	return nil
}
