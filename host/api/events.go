package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

// watchEvents serves GET /v1/events.
func (a *API) watchEvents(w http.ResponseWriter, r *http.Request) error {
	query, fresh, err := a.eventQuery(r)
	if err != nil {
		return err
	}
	if err := a.streams.takeOne("event streams"); err != nil {
		return err
	}
	defer a.streams.free(1)
	c := http.NewResponseController(w)
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("set deadline: %w", err)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(a.stopping, func() { cancel(errStopping) })()
	s := &stream{w: w, c: c, stall: a.cfg.Limits.Stall, dirty: make(chan struct{}, 1), cancel: cancel}
	w.Header().Set("Content-Type", wire.Stream)
	s.write(": hello\n\n")
	if fresh {
		s.write("event: " + wire.EventResync + "\ndata: {}\n\n")
	}
	var flusher sync.WaitGroup
	flusher.Go(func() { s.keepFlushed(ctx, a.cfg.Limits.KeepAlive) })
	end := a.follow(ctx, s, query)
	cancel(nil)
	flusher.Wait()
	if data, err := json.Marshal(a.problem(r.Context(), end)); err == nil && r.Context().Err() == nil {
		s.write("event: " + wire.EventEnd + "\ndata: " + string(data) + "\n\n")
		s.flush()
	}
	return nil
}

var (
	errStopping = &jobhost.Error{
		Code: jobhost.CodeUnavailable, Message: "the host is stopping", RetryAfter: time.Second,
		Hint: "subscribe again when it is back",
	}
	errSilent = &jobhost.Error{
		Code: jobhost.CodeUnavailable, Message: "the host ended the stream", Hint: "subscribe again after the last number that was read",
	}
	errGone = errors.New("the reader is gone")
)

// follow writes events until there are no more, and returns why.
func (a *API) follow(ctx context.Context, s *stream, query jobhost.EventQuery) error {
	for event, err := range a.server.Events(ctx, query) {
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return err
		}
		data, err := json.Marshal(event)
		if err != nil {
			return err
		}
		s.write("id: " + a.epoch + "." + strconv.FormatUint(event.Seq, 10) +
			"\nevent: " + string(event.Kind) + "\ndata: " + string(data) + "\n\n")
	}
	return errSilent
}

// eventQuery reads what is to be followed. fresh is true when the reader wants
// to go on from an id that another process gave.
func (a *API) eventQuery(r *http.Request) (query jobhost.EventQuery, fresh bool, err error) {
	q := r.URL.Query()
	if query.Job = q.Get("job"); query.Job != "" {
		if err := jobhost.CheckID(query.Job); err != nil {
			return query, false, err
		}
	}
	if text := q.Get("after"); text != "" {
		if query.After, err = parseSeq("after", text); err != nil {
			return query, false, err
		}
	}
	switch ids := r.Header["Last-Event-Id"]; {
	case len(ids) > 1:
		return query, false, badSeq("Last-Event-ID")
	case len(ids) == 1 && ids[0] != "":
		epoch, seq, err := parseEventID(ids[0])
		if err != nil {
			return query, false, err
		}
		if epoch != a.epoch {
			query.After = 0 // numbers of another life mean nothing here
			return query, true, nil
		}
		query.After = seq
	}
	return query, false, nil
}

// parseEventID reads the id of an event: the epoch, a dot, and the number.
func parseEventID(id string) (epoch string, seq uint64, err error) {
	epoch, text, ok := strings.Cut(id, ".")
	if !ok || epoch == "" || len(epoch) > 16 {
		return "", 0, badSeq("Last-Event-ID")
	}
	seq, err = parseSeq("Last-Event-ID", text)
	return epoch, seq, err
}

func parseSeq(field, text string) (uint64, error) {
	seq, err := strconv.ParseUint(text, 10, 64)
	if err != nil || strconv.FormatUint(seq, 10) != text {
		return 0, badSeq(field)
	}
	return seq, nil
}

func badSeq(field string) error {
	return &jobhost.Error{
		Code: jobhost.CodeInvalid, Field: field, Message: field + " is not the id of an event",
		Hint: "send the id of the last event as it came, or leave it out to begin now",
	}
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

	mu sync.Mutex // protects w
	w  io.Writer
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
func (s *stream) keepFlushed(ctx context.Context, silence time.Duration) {
	timer := time.NewTicker(silence)
	defer timer.Stop()
	for {
		select {
		case <-s.dirty:
			s.flush()
			timer.Reset(silence)
		case <-timer.C:
			s.write(": still here\n\n")
		case <-ctx.Done():
			return
		}
	}
}
