package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

const (
	silence    = 60 * time.Second // after which a stream is dead: hosts say something every 15 s
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
	maxRetries = 6 // in a row, about 10 s
)

// source is a stream of events of a host.
type source struct {
	what  string // such as "states", for errors
	path  string
	query url.Values
	after string // where to begin; empty = where the host likes
	err   error  // why it can't be asked for
}

// followed yields the events of a source until ctx ends, and then why it did. A
// connection that breaks is made again and goes on after the last event that had
// an id.
func followed[E any](ctx context.Context, c *Client, s source) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		f := &follower[E]{source: s, client: c, yield: yield}
		for {
			err := f.connect(ctx)
			if errors.Is(err, errDone) {
				return
			}
			if err = f.again(ctx, err); err != nil {
				var none E
				yield(none, err)
				return
			}
		}
	}
}

// follower reads one stream of events, over several connections if need be.
type follower[E any] struct {
	source
	client   *Client
	yield    func(E, error) bool
	last     string // id of the last event that had one, or ""
	failures int    // connections in a row without one
}

var (
	errDone         = errors.New("the reader wants no more")
	errSilent error = &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "the host has gone silent"}
)

// brokenError is a connection that ended by itself, for this reason.
type brokenError struct{ cause error }

func (b *brokenError) Error() string { return b.cause.Error() }

// again returns nil, after a while, when the stream can go on over a new
// connection after err, and else the error for the reader.
func (f *follower[E]) again(ctx context.Context, err error) error {
	broken, ok := errors.AsType[*brokenError](err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !ok:
		return err
	case f.failures < maxRetries && (f.last != "" || f.after != ""):
		f.failures++
		return pause(ctx, min(lastRetry, firstRetry<<(f.failures-1)))
	}
	return &jobhost.Error{
		Code: jobhost.CodeUnavailable, Message: "the stream of " + f.what + " broke off", Cause: broken.cause,
		Hint: "is jobhost running? start it with: jobhost run",
	}
}

func (f *follower[E]) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer watchdog.Stop()
	resp, err := f.client.send(ctx, f.request())
	if err != nil {
		if f.last != "" && jobhost.CodeOf(err) == jobhost.CodeUnavailable {
			return &brokenError{err}
		}
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, int(min(f.client.maxResponse, 1<<30)))
	var m message
	for lines.Scan() {
		watchdog.Reset(silence)
		if !m.add(lines.Bytes()) {
			continue
		}
		if err := f.deliver(&m); err != nil {
			return err
		}
		m = message{data: m.data[:0]}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return errTooLarge(f.client.maxResponse)
	}
	return &brokenError{cmp.Or(lines.Err(), io.ErrUnexpectedEOF)}
}

func (f *follower[E]) request() request {
	q, header := maps.Clone(f.query), http.Header{"Accept": {wire.Stream}}
	if f.last != "" {
		header.Set("Last-Event-ID", f.last)
	} else {
		setText(q, "after", f.after)
	}
	return request{method: "GET", path: f.path + "?" + q.Encode(), header: header, err: f.err}
}

// deliver hands a message on.
func (f *follower[E]) deliver(m *message) error {
	switch m.event {
	case wire.EventResync:
		return &jobhost.Error{
			Code: jobhost.CodeUnavailable, Message: "jobhost was started anew: events are lost",
			Hint: "look at the jobs again, then subscribe again",
		}
	case wire.EventEnd:
		var p wire.Problem
		if err := f.client.decode(m.data, &p); err != nil {
			return err
		}
		if err := p.Err(); f.last == "" || jobhost.CodeOf(err) != jobhost.CodeExhausted {
			return err
		}
		return &brokenError{p.Err()} // what follows the last event can be had
	}
	var event E
	if err := f.client.decode(m.data, &event); err != nil {
		return err
	}
	if m.id != "" {
		f.last, f.failures = m.id, 0
	}
	if !f.yield(event, nil) {
		return errDone
	}
	return nil
}

// message is one message of a stream.
type message struct {
	id, event string
	data      []byte
}

// add adds a line and reports whether the message is complete.
func (m *message) add(line []byte) bool {
	if len(line) == 0 {
		return len(m.data) > 0
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "id":
		m.id = string(value)
	case "event":
		m.event = string(value)
	case "data":
		m.data = append(m.data, value...)
	}
	return false
}
