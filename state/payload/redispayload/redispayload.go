// Package redispayload keeps payloads in Redis. It implements [payload.Store].
//
//	PREFIX{KEY}      how many pieces there are: it comes last, so that an object is there whole or not
//	PREFIX{KEY}:N    piece N, up to 1 MiB
//	PREFIX{index}    a sorted set of all keys
//	PREFIX{mark}NAME a mark: see [payload.Marker]
//
// An object stays until it is deleted. Only pieces of one that is not committed expire,
// so that nothing stays of an upload that was cut off. Redis must be one that keeps
// what it was given: with an append-only file, and without a policy that evicts keys.
package redispayload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/jobhost/jobhost/state/payload"
)

// Config says where the objects are.
type Config struct {
	// URL is that of the server: redis://, rediss:// or unix://, with user and
	// password if need be.
	URL string
	// Password replaces that of the URL; empty = it doesn't.
	Password string
	// Prefix is what all keys begin with.
	Prefix string
	// TTL is how long a piece stays of an object that is not committed, since the last
	// piece was written; at least a minute.
	TTL time.Duration
	// Relaxed acknowledges what is in the server's memory only. Otherwise it
	// must have an append-only file, and an object is durable when that was
	// synced: by WAITAOF, or before 7.2 by appendfsync always.
	Relaxed bool
	// Logger gets what can't be found out about the server; nil = it is not logged.
	Logger *slog.Logger
}

const (
	pieceBytes  = 1 << 20
	syncWithin  = 30 * time.Second // the append-only file
	abortWithin = 10 * time.Second // a removal after an error
	removeAtOne = 64               // objects in one round trip
)

// Store is a [payload.Store] in Redis.
type Store struct {
	cfg    Config
	client *redis.Client
	always atomic.Bool // the server is one that syncs before it answers
	keeps  atomic.Bool // the server is one that evicts nothing, as far as it says
}

var _ payload.Store = (*Store)(nil)

// Open returns a store. It makes no connection: a server that is away is no
// reason not to start.
func Open(cfg Config) (*Store, error) {
	opts, err := redis.ParseURL(cfg.URL)
	if err != nil {
		// The library's error may repeat the URL, and so the password in it.
		return nil, errors.New("open payload redis: the URL is not one of a server: write redis://HOST:PORT/NUMBER, rediss:// or unix://")
	}
	if cfg.TTL < time.Minute {
		return nil, fmt.Errorf("open payload redis: a TTL of %v is shorter than a minute", cfg.TTL)
	}
	if cfg.Password != "" {
		opts.Password = cfg.Password
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	opts.ContextTimeoutEnabled = true
	logging.Disable() // what the library would write to the standard error it returns as well
	return &Store{cfg: cfg, client: redis.NewClient(opts)}, nil
}

// head is the name of an object's head; the braces keep it and its pieces on
// one node of a cluster.
func (s *Store) head(key string) string { return s.cfg.Prefix + "{" + key + "}" }

func (s *Store) piece(key string, n int) string { return s.head(key) + ":" + strconv.Itoa(n) }

func (s *Store) index() string { return s.cfg.Prefix + "{index}" }

// Open implements [payload.Store].
func (s *Store) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	pieces, err := s.client.Get(ctx, s.head(key)).Int()
	if errors.Is(err, redis.Nil) {
		return nil, payload.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return &reader{store: s, ctx: ctx, key: key, pieces: pieces}, nil
}

// reader reads one piece after the other.
type reader struct {
	store  *Store
	ctx    context.Context // of the read
	key    string
	next   int
	pieces int
	rest   []byte
}

// Read implements [io.Reader].
func (r *reader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.next >= r.pieces {
			return 0, io.EOF
		}
		piece, err := r.store.client.Get(r.ctx, r.store.piece(r.key, r.next)).Bytes()
		if errors.Is(err, redis.Nil) {
			return 0, payload.ErrNotFound // it was deleted in between
		}
		if err != nil {
			return 0, err
		}
		r.rest = piece
		r.next++
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Close implements [io.Closer].
func (r *reader) Close() error {
	r.next, r.rest = r.pieces, nil
	return nil
}

// Delete implements [payload.Store].
func (s *Store) Delete(ctx context.Context, keys []string) error {
	for len(keys) > 0 {
		n := min(len(keys), removeAtOne)
		if err := s.remove(ctx, keys[:n]); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

func (s *Store) remove(ctx context.Context, keys []string) error {
	heads := make([]string, len(keys))
	for i, key := range keys {
		heads[i] = s.head(key)
	}
	counts, err := s.client.MGet(ctx, heads...).Result()
	if err != nil {
		return err
	}
	_, err = s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			text, _ := counts[i].(string)
			pieces, _ := strconv.Atoi(text) // without a head there are no pieces that don't expire
			// The head goes first: it must not be found without its pieces.
			p.Unlink(ctx, s.head(key))
			for n := range pieces {
				p.Unlink(ctx, s.piece(key, n))
			}
			p.ZRem(ctx, s.index(), key)
		}
		return nil
	})
	return err
}

// List implements [payload.Store].
func (s *Store) List(ctx context.Context, after string, limit int) ([]string, error) {
	if limit <= 0 {
		return nil, nil
	}
	low := "-"
	if after != "" {
		low = "(" + after
	}
	found, err := s.client.ZRangeArgs(ctx, redis.ZRangeArgs{
		Key: s.index(), Start: low, Stop: "+", ByLex: true, Count: int64(limit),
	}).Result()
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Close implements [payload.Store].
func (s *Store) Close() error { return s.client.Close() }
