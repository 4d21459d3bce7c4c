package api

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
	"github.com/jobhost/jobhost/internal/term"
)

// refusal is an error with a status that its code alone would not give.
type refusal struct {
	err    *jobhost.Error
	status int
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

func refuse(status int, err *jobhost.Error) error { return &refusal{err, status} }

// fail answers with the problem that err is. Handlers call it, through their
// error, before they have written anything.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	if w, ok := w.(*response); ok && w.status != 0 {
		// Half an answer is worse than none.
		a.log.Warn("answer broke off", "path", w.route, "error", err)
		panic(http.ErrAbortHandler) //nolint:forbidigo // net/http asks for it: the connection is cut
	}
	p := a.problem(r.Context(), err)
	h := w.Header()
	delete(h, "Content-Disposition")
	delete(h, "Content-Length")
	h.Set("Content-Type", wire.Trouble)
	if p.RetryAfter > 0 {
		seconds := (time.Duration(p.RetryAfter) + time.Second - 1) / time.Second
		h.Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	body, err := json.Marshal(p)
	if err != nil {
		body = []byte("{}") // cannot happen: there is nothing in it that JSON can't say
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // a client that is gone needs no answer
}

// problem describes err for the client, and logs its cause under an id that
// the client is given.
func (a *API) problem(ctx context.Context, err error) *wire.Problem {
	e, known := errors.AsType[*jobhost.Error](err)
	if !known && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		// The client is mostly gone.
		e, known = &jobhost.Error{
			Code: jobhost.CodeUnavailable, Message: "the request ended before it was answered", RetryAfter: time.Second,
		}, true
		err = e
	}
	p := wire.NewProblem(err)
	if r, ok := errors.AsType[*refusal](err); ok {
		p.Status = r.status
	}
	if errors.Is(err, term.ErrUnknown) {
		p.Status = http.StatusBadGateway // libraries repeat a 503 by themselves
	} else if p.RetryAfter == 0 && (p.Code == jobhost.CodeExhausted || p.Code == jobhost.CodeUnavailable) {
		p.RetryAfter = jobhost.Duration(time.Second)
	}
	if known && (e.Cause == nil || p.FiberEnded) && p.Code != jobhost.CodeInternal {
		return p
	}
	level := slog.LevelDebug
	if p.Status >= http.StatusInternalServerError {
		level = slog.LevelError
	}
	id := uuid.NewString()
	p.Instance = "urn:uuid:" + id
	a.log.Log(ctx, level, "request failed", "incident", id, "status", p.Status, "error", err)
	return p
}
