package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
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
		w: w, c: http.NewResponseController(w), cancel: cancel, dirty: make(chan struct{}, 1),
		stall: a.cfg.Limits.Stall, silence: a.cfg.Limits.KeepAlive,
	}
	end := tell(ctx, s)
	cancel(nil)
	s.flusher.Wait()
	if !s.begun {
		return end
	}
	if data, err := json.Marshal(a.problem(r.Context(), end)); err == nil && r.Context().Err() == nil {
		s.send("", wire.EventEnd, data)
		s.flush()
	}
	return nil
}

// follow writes events until there are no more, and returns why. The stream begins
// with the first one. name returns an event's id, which may be empty, and its name.
func follow[E any](ctx context.Context, s *stream, events iter.Seq2[E, error], name func(*E) (id, name string)) error {
	for event, err := range events {
		if err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		data, err := json.Marshal(&event)
		if err != nil {
			return err
		}
		if err := s.begin(ctx); err != nil {
			return err
		}
		id, kind := name(&event)
		s.send(id, kind, data)
	}
	return errSilent
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

	mu sync.Mutex // protects w
	w  http.ResponseWriter
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
func (s *stream) send(id, name string, data []byte) {
	if id != "" {
		id = "id: " + id + "\n"
	}
	s.write(id + "event: " + name + "\ndata: " + string(data) + "\n\n")
}

func (s *stream) write(text string) {
	s.mu.Lock()
	err := s.c.SetWriteDeadline(time.Now().Add(s.stall))
	if err == nil {
		_, err = io.WriteString(s.w, text)
	}
	s.mu.Unlock()
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
	if err := errors.Join(s.c.SetWriteDeadline(time.Now().Add(s.stall)), s.c.Flush()); err != nil {
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
