package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// asynq's settings. It takes one job per call, in both directions, so
// throughput comes from many connections and from several servers, each of
// which fetches one task after the other; its documentation says to add
// servers. Its pause of a second before it checks an empty queue again would
// dominate the times from submit to end.
const (
	asynqServers     = 4
	asynqConcurrency = 32 // of each
	asynqConnections = 64 // of each, and of the client
	asynqCheck       = 5 * time.Millisecond
)

// asynqQueue is the name of the queue when none is given.
const asynqQueue = "default"

// asynqSystem is a client that enqueues and servers that work.
type asynqSystem struct {
	client    *asynq.Client
	servers   []*asynq.Server
	inspector *asynq.Inspector
	payload   int
	said      about
}

func openAsynq(ctx context.Context, at target, l *load, ledger *ledger) (_ system, err error) {
	options := asynq.RedisClientOpt{Addr: at.Address, PoolSize: asynqConnections}
	s := &asynqSystem{client: asynq.NewClient(options), inspector: asynq.NewInspector(options), payload: max(l.Payload, 8)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(ctx))
		}
	}()
	if err := s.describe(ctx, at.Address); err != nil {
		return nil, err
	}
	work := asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		ledger.ran(int(binary.LittleEndian.Uint64(task.Payload())))
		return nil
	})
	for range asynqServers {
		server := asynq.NewServer(watchedRedis{options, ledger}, asynq.Config{
			Concurrency: asynqConcurrency, TaskCheckInterval: asynqCheck, LogLevel: asynq.WarnLevel,
		})
		if err := server.Start(work); err != nil {
			return nil, err
		}
		s.servers = append(s.servers, server)
	}
	return s, nil
}

// watchedRedis makes the connections of a server. asynq doesn't report when it
// has recorded the end of a task, so the ledger is notified when Redis answers
// the script that does it.
type watchedRedis struct {
	asynq.RedisClientOpt
	ledger *ledger
}

// MakeRedisClient implements [asynq.RedisConnOpt].
func (w watchedRedis) MakeRedisClient() any {
	client := w.RedisClientOpt.MakeRedisClient().(redis.UniversalClient)
	client.AddHook(endHook{w.ledger})
	return client
}

// endHook implements [redis.Hook].
type endHook struct{ ledger *ledger }

func (endHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (endHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h endHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if id := endedTask(cmd.Args()); err == nil && id != "" {
			h.ledger.ended(jobNumber(id))
		}
		return err
	}
}

// endedTask returns the id of the task that a command permanently removes from
// the active ones, or "". It is a script on the keys of the active tasks, the
// leases and the task; no other script has these three in this order.
func endedTask(args []any) string {
	if len(args) < 6 || args[0] != "evalsha" && args[0] != "eval" {
		return ""
	}
	const prefix = "asynq:{" + asynqQueue + "}:"
	active, _ := args[3].(string)
	lease, _ := args[4].(string)
	task, _ := args[5].(string)
	if active != prefix+"active" || lease != prefix+"lease" {
		return ""
	}
	id, ok := strings.CutPrefix(task, prefix+"t:")
	if !ok {
		return ""
	}
	return id
}

// describe asks Redis for its settings.
func (s *asynqSystem) describe(ctx context.Context, address string) (err error) {
	client := redis.NewClient(&redis.Options{Addr: address})
	defer func() { err = errors.Join(err, client.Close()) }()
	info, err := client.Info(ctx, "server").Result()
	if err != nil {
		return fmt.Errorf("ask Redis for its version: %w", err)
	}
	_, after, _ := strings.Cut(info, "redis_version:")
	version, _, _ := strings.Cut(after, "\r\n")
	set, err := client.ConfigGet(ctx, "append*").Result()
	if err != nil {
		return fmt.Errorf("ask Redis for its settings: %w", err)
	}
	s.said = about{
		Versions:   moduleVersions("github.com/hibiken/asynq", "github.com/redis/go-redis/v9") + ", Redis " + version,
		Durability: fmt.Sprintf("appendonly %s, appendfsync %s", set["appendonly"], set["appendfsync"]),
		Settings: fmt.Sprintf("%d servers with Concurrency %d, TaskCheckInterval %v and %d connections each",
			asynqServers, asynqConcurrency, asynqCheck, asynqConnections),
	}
	return nil
}

func (s *asynqSystem) submit(ctx context.Context, jobs []int) error {
	if len(jobs) != 1 {
		return errNoBatch
	}
	payload := make([]byte, s.payload)
	binary.LittleEndian.PutUint64(payload, uint64(jobs[0]))
	_, err := s.client.EnqueueContext(ctx, asynq.NewTask("noop", payload), asynq.TaskID(jobID(jobs[0])))
	return err
}

func (s *asynqSystem) counts(context.Context) (counts, error) {
	q, err := s.inspector.GetQueueInfo(asynqQueue)
	if err != nil {
		return counts{}, err
	}
	return counts{
		Succeeded: int64(q.ProcessedTotal - q.FailedTotal),
		Open:      int64(q.Pending + q.Active + q.Scheduled + q.Retry + q.Aggregating),
		Failed:    int64(q.Archived),
	}, nil
}

func (s *asynqSystem) about() about { return s.said }

func (s *asynqSystem) close(context.Context) error {
	var stopping sync.WaitGroup
	for _, server := range s.servers {
		stopping.Go(server.Shutdown)
	}
	stopping.Wait()
	return errors.Join(s.client.Close(), s.inspector.Close())
}
