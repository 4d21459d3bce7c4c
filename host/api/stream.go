package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

var (
	errStopping = &jobhost.Error{
		Code: jobhost.CodeUnavailable, Message: "the host is stopping", RetryAfter: time.Second,
		Hint: "subscribe again when it is back",
	}
	errSilent = &jobhost.Error{
		Code: jobhost.CodeUnavailable, Message: "the host ended the stream", Hint: "subscribe again after the last id that was read",
	}
	errGone = errors.New("the reader is gone")
)

// serveStream answers with server-sent events: what tell writes, and at last an
// event with the problem that tell returns. If tell returns before it has begun the
// stream, that is an answer as any other.
func (a *API) serveStream(w http.ResponseWriter, r *http.Request, tell func(context.Context, *stream) error) error {
	call := callOf(w)
	if err := takeOne(&call.quota.streams, "event streams"); err != nil {
		return err
	}
	defer call.quota.streams.Free(1)
	call.conn.occupy()
	defer call.conn.leave()
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(a.stopping, func() { cancel(errStopping) })()
	s := &stream{
		lease: &call.lease, w: w, c: http.NewResponseController(w), cancel: cancel, dirty: make(chan struct{}, 1),
		stall: a.cfg.Limits.Stall, silence: a.cfg.Limits.KeepAlive,
	}
	end := tell(ctx, s)
	cancel(nil)
	s.flusher.Wait()
	if !s.begun {
		return end
	}
	if data, err := json.Marshal(a.problem(r.Context(), end)); err == nil && r.Context().Err() == nil {
		s.send("", wire.EventEnd, whole(data))
		s.flush()
	}
	return nil
}

// heading is what a stream has to know of an event.
type heading struct {
	id, name string // id may be empty
	room     int    // how many bytes are held while it is written, if they may be many
	replayed bool   // it is the last of a replay
	// json yields its data in pieces, which are good until the next; nil = that of the event as a whole.
	json iter.Seq[[]byte]
}

// follow writes events until there are no more, and returns why. The stream begins
// with the first one.
func follow[E any](ctx context.Context, s *stream, events iter.Seq2[E, error], head func(*E) heading) error {
	for event, err := range events {
		if err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		h := head(&event)
		if err := s.hold(ctx, h.room); err != nil {
			return err
		}
		if h.json == nil {
			data, err := json.Marshal(&event)
			if err != nil {
				return err
			}
			h.json = whole(data)
		}
		if err := s.begin(ctx); err != nil {
			return err
		}
		s.send(h.id, h.name, h.json)
		s.written(h.replayed)
	}
	return errSilent
}

// whole yields data in one piece.
func whole(data []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) { yield(data) }
}

// stream is the connection of one reader. Writes go to the server's buffer,
// which keepFlushed empties: so that many events go out as one packet when
// they come fast, and one at a time when they come slowly. A reader that
// stalls makes write block, and then falls behind in the server's events,
// which end with an error that says so.
type stream struct {
	c      *http.ResponseController
	stall  time.Duration
	dirty  chan struct{} // there is something to flush; holds one, more would say nothing new
	cancel context.CancelCauseFunc

	silence time.Duration  // after which a comment is written
	begun   bool           // the answer has begun
	flusher sync.WaitGroup // of keepFlushed

	lease     *lease // of room for large events and replays
	replaying bool   // what is written was paid for at once

	mu     sync.Mutex // protects what follows
	w      http.ResponseWriter
	leased bool // lease holds room, so the reader has less time while others wait for some
}

// begin begins the answer, unless it has begun.
func (s *stream) begin(ctx context.Context) error {
	if s.begun {
		return nil
	}
	if err := s.c.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("set deadline: %w", err)
	}
	s.begun = true
	h := s.w.Header()
	h.Set("Content-Type", wire.Stream)
	h.Set("X-Accel-Buffering", "no") // nginx would keep events until a buffer is full
	s.write(": hello\n\n")
	s.flusher.Go(func() { s.keepFlushed(ctx) })
	return nil
}

// send writes an event; without an id, a reader goes on after the one before it.
func (s *stream) send(id, name string, data iter.Seq[[]byte]) {
	if id != "" {
		id = "id: " + id + "\n"
	}
	s.mu.Lock()
	err := s.sendLocked(id+"event: "+name+"\ndata: ", data)
	s.mu.Unlock()
	s.wrote(err)
}

// sendLocked writes a small event at once, and of others no more than a piece is in memory twice.
func (s *stream) sendLocked(head string, data iter.Seq[[]byte]) error {
	buf := []byte(head)
	for part := range data {
		if len(buf)+len(part) > piece {
			if err := s.putLocked(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
		if len(part) > piece {
			if err := s.putLocked(part); err != nil {
				return err
			}
			continue
		}
		buf = append(buf, part...)
	}
	return s.putLocked(append(buf, "\n\n"...))
}

func (s *stream) write(text string) {
	s.mu.Lock()
	err := s.putLocked([]byte(text))
	s.mu.Unlock()
	s.wrote(err)
}

// putLocked writes pieces, each of which has its own time.
func (s *stream) putLocked(data []byte) error {
	for part := range slices.Chunk(data, piece) {
		if err := s.deadlineLocked(); err != nil {
			return err
		}
		if _, err := s.w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// wrote sees to what was written, or could not be.
func (s *stream) wrote(err error) {
	if err != nil {
		s.cancel(errGone)
	}
	select {
	case s.dirty <- struct{}{}:
	default:
	}
}

func (s *stream) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := errors.Join(s.deadlineLocked(), s.c.Flush()); err != nil {
		s.cancel(errGone)
	}
}

// keepFlushed flushes what was written, and writes a comment after a silence,
// so that both ends notice when the other is gone. It returns when ctx ends.
func (s *stream) keepFlushed(ctx context.Context) {
	timer := time.NewTicker(s.silence)
	defer timer.Stop()
	for {
		select {
		case <-s.dirty:
			s.flush()
			timer.Reset(s.silence)
		case <-timer.C:
			s.write(": still here\n\n")
		case <-ctx.Done():
			return
		}
	}
}
