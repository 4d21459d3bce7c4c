package redispayload

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/jobhost/jobhost/state/payload"
)

// upload is an object in the making.
type upload struct {
	store  *Store
	ctx    context.Context // of its making
	key    string
	piece  []byte // not sent yet
	pieces int
	since  time.Time // all pieces have their full time since then
	done   bool
}

// Create implements [payload.Store].
func (s *Store) Create(ctx context.Context, key string) (payload.Object, error) {
	return &upload{store: s, ctx: ctx, key: key}, nil
}

// Write implements [payload.Object].
func (u *upload) Write(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	written := 0
	for len(p) > 0 {
		n := min(len(p), pieceBytes-len(u.piece))
		u.piece = append(u.piece, p[:n]...)
		p, written = p[n:], written+n
		if len(u.piece) == pieceBytes {
			if err := u.send(); err != nil {
				return written, err
			}
		}
	}
	return written, nil
}

// send writes a piece. Those before it get their full time again once a part of that
// is over: an upload may take longer than that.
func (u *upload) send() error {
	s := u.store
	if err := s.checkKeeps(u.ctx); err != nil {
		return err
	}
	if u.pieces == 0 {
		u.since = time.Now()
	}
	if time.Since(u.since) > s.cfg.TTL/4 {
		if err := u.renew(); err != nil {
			return err
		}
	}
	if err := s.client.Set(u.ctx, s.piece(u.key, u.pieces), u.piece, s.cfg.TTL).Err(); err != nil {
		return err
	}
	u.pieces++
	u.piece = u.piece[:0]
	return nil
}

// renew gives the pieces their full time.
func (u *upload) renew() error {
	s := u.store
	_, err := s.client.Pipelined(u.ctx, func(p redis.Pipeliner) error {
		for n := range u.pieces {
			p.Expire(u.ctx, s.piece(u.key, n), s.cfg.TTL)
		}
		return nil
	})
	u.since = time.Now()
	return err
}

var errLost = errors.New("the server has lost a part of the object: it was restarted, or evicts keys")

// Commit implements [payload.Object]. It finds out whether all pieces are there still:
// a server that was restarted since may have lost some.
func (u *upload) Commit() error {
	if len(u.piece) > 0 {
		if err := u.send(); err != nil {
			return err
		}
	}
	s := u.store
	if err := s.checkKeeps(u.ctx); err != nil {
		return err
	}
	// What is synced is reported per connection. The file is written in order, so
	// with the head all pieces are in it, whichever connection they came by.
	conn := s.client.Conn()
	defer conn.Close()
	persisted := make([]*redis.BoolCmd, u.pieces)
	_, err := conn.TxPipelined(u.ctx, func(p redis.Pipeliner) error {
		for n := range persisted {
			persisted[n] = p.Persist(u.ctx, s.piece(u.key, n))
		}
		p.Set(u.ctx, s.head(u.key), u.pieces, 0)
		p.ZAdd(u.ctx, s.index(), redis.Z{Member: u.key})
		return nil
	})
	if err != nil {
		return err
	}
	for _, there := range persisted {
		if !there.Val() {
			return errLost
		}
	}
	if !s.cfg.Relaxed {
		if err := s.sync(u.ctx, conn); err != nil {
			return err
		}
	}
	u.done = true
	return nil
}

// Abort implements [payload.Object].
func (u *upload) Abort() {
	if u.done {
		return
	}
	u.done, u.piece = true, nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(u.ctx), abortWithin)
	defer cancel()
	s := u.store
	_, _ = s.client.Pipelined(ctx, func(p redis.Pipeliner) error { // what stays expires, or is swept
		p.Unlink(ctx, s.head(u.key))
		for n := range u.pieces + 1 { // the last may have arrived without an answer
			p.Unlink(ctx, s.piece(u.key, n))
		}
		p.ZRem(ctx, s.index(), u.key)
		return nil
	})
}
