package object

import (
	"context"
	"errors"
	"sync"

	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/state/payload"
)

// Spool takes the result of an attempt if it is too large for the queue's store. It makes
// a bounded copy, so that a result the payload store doesn't accept can be kept: see
// [Spool.Keep]. It must be ended by Commit or Abort.
type Spool struct {
	k     *Keeper
	w     *Writer // nil = the store is unavailable
	fault error   // why the store has not accepted it
	copy  *copied // nil = it is too large to be kept
	left  int64   // remaining bytes of the limit
}

// Spool begins a result of up to limit bytes.
func (k *Keeper) Spool(ctx context.Context, limit int64) (*Spool, error) {
	s := &Spool{k: k, copy: &copied{room: &k.room}, left: limit}
	if away := k.Unwritten(); away != nil {
		s.fault = errUnwritten(&queue.StoreFault{Store: away.Store, Verb: away.Verb, Err: errAway})
		return s, nil
	}
	w, err := k.Create(ctx, limit)
	if err != nil && !s.bears(err) {
		return nil, err
	}
	s.w = w
	return s, nil
}

// bears reports whether the spool can continue with its copy, without the store.
func (s *Spool) bears(err error) bool {
	if _, its := errors.AsType[*queue.StoreFault](err); !its {
		return false
	}
	s.fault = err
	if s.w != nil {
		s.w.Abort()
		s.w = nil
	}
	return s.copy != nil
}

// Write adds to the result. Errors are those of [Writer.Write].
func (s *Spool) Write(p []byte) (int, error) {
	if int64(len(p)) > s.left {
		return 0, payload.ErrTooLarge
	}
	s.left -= int64(len(p))
	if s.copy != nil && !s.copy.add(p) {
		s.copy.release()
		s.copy = nil
	}
	if s.w != nil {
		if n, err := s.w.Write(p); err != nil && !s.bears(err) {
			return n, err
		}
	}
	if s.w == nil && s.copy == nil {
		return 0, s.fault
	}
	return len(p), nil
}

// Commit makes the result durable. After an error, [Spool.Keep] may be possible.
func (s *Spool) Commit() (payload.Ref, error) {
	if s.w == nil {
		return payload.Ref{}, s.fault
	}
	ref, err := s.w.Commit()
	if err != nil {
		s.bears(err)
		return ref, err
	}
	s.Abort()
	return ref, nil
}

// Keep returns the copy, to be stored when the store is back; false = it can't be kept.
func (s *Spool) Keep() (queue.Kept, bool) {
	if s.fault == nil || s.copy == nil {
		return nil, false
	}
	kept := &kept{k: s.k, copy: s.copy}
	s.copy = nil
	return kept, true
}

// Abort frees memory and removes the incomplete object. After Commit or Keep it removes
// nothing.
func (s *Spool) Abort() {
	if s.w != nil {
		s.w.Abort()
		s.w = nil
	}
	if s.copy != nil {
		s.copy.release()
		s.copy = nil
	}
}

// room bounds the memory of copied results.
type room struct {
	mu    sync.Mutex // protects taken
	taken int64
	most  int64
	free  sync.Pool // of *[chunkBytes]byte
}

// usual is the default maximum of a result.
const usual = 1 << 20

// has reports whether there is room for n more bytes.
func (r *room) has(n int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken+n <= r.most
}

func (r *room) take() (*[chunkBytes]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken+chunkBytes > r.most {
		return nil, false
	}
	r.taken += chunkBytes
	if c, ok := r.free.Get().(*[chunkBytes]byte); ok {
		return c, true
	}
	return new([chunkBytes]byte), true
}

func (r *room) give(c *[chunkBytes]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken -= chunkBytes
	r.free.Put(c)
}

const chunkBytes = 64 << 10

// copied is the copy of a result. One goroutine uses it at a time.
type copied struct {
	room   *room
	chunks []*[chunkBytes]byte
	size   int64
}

// add reports whether there was room. A single result may take a quarter of the total.
func (c *copied) add(p []byte) bool {
	for len(p) > 0 {
		at := int(c.size % chunkBytes)
		if at == 0 {
			chunk, ok := c.room.take()
			if !ok {
				return false
			}
			c.chunks = append(c.chunks, chunk)
		}
		n := copy(c.chunks[len(c.chunks)-1][at:], p)
		c.size += int64(n)
		p = p[n:]
	}
	return c.size <= c.room.most/4
}

// writeTo writes all of it.
func (c *copied) writeTo(w *Writer) error {
	left := c.size
	for _, chunk := range c.chunks {
		n := min(left, chunkBytes)
		if _, err := w.Write(chunk[:n]); err != nil {
			return err
		}
		left -= n
	}
	return nil
}

func (c *copied) release() {
	for _, chunk := range c.chunks {
		c.room.give(chunk)
	}
	c.chunks, c.size = nil, 0
}
