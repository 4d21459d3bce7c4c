package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// serveRedis starts an empty Redis with an append-only file that is synced as
// said: always (before a command is answered) or everysec.
func serveRedis(fsync string) func(context.Context, string) (*server, error) {
	return func(ctx context.Context, dir string) (*server, error) {
		path, err := program("redis-server")
		if err != nil {
			return nil, err
		}
		as, err := newServant(dir, "redis")
		if err != nil {
			return nil, err
		}
		if err := os.RemoveAll(filepath.Join(dir, "appendonlydir")); err != nil {
			return nil, err
		}
		port, err := freePort(ctx)
		if err != nil {
			return nil, err
		}
		address := fmt.Sprintf("127.0.0.1:%d", port)
		client := redis.NewClient(&redis.Options{Addr: address})
		s, err := start(ctx, as, address, []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL},
			func(ctx context.Context) error { return client.Ping(ctx).Err() },
			path, "--bind", "127.0.0.1", "--port", fmt.Sprint(port), "--dir", dir, "--daemonize", "no",
			"--save", "", "--appendonly", "yes", "--appendfsync", fsync)
		return s, errors.Join(err, client.Close())
	}
}
