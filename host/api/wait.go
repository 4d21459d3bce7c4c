package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jobhost/jobhost"
)

// errEnough ends a wait whose time ran out, or that the shutdown ended.
var errEnough = errors.New("waited long enough")

// waitOf returns how long the request asks to wait for the job; 0 = not at all.
func (a *API) waitOf(r *http.Request) (time.Duration, error) {
	if r.URL.RawQuery == "" {
		return 0, nil
	}
	text := r.URL.Query().Get("wait")
	if text == "" {
		return 0, nil
	}
	d, err := jobhost.ParseDuration(text)
	if err != nil {
		return 0, &jobhost.Error{Code: jobhost.CodeInvalid, Field: "wait", Message: err.Error(), Hint: jobhost.HintOf(err)}
	}
	if d < 0 || time.Duration(d) > a.cfg.Limits.MaxWait {
		return 0, &jobhost.Error{
			Code: jobhost.CodeInvalid, Field: "wait",
			Message: fmt.Sprintf("wait %v is not between 0s and %v", d, jobhost.Duration(a.cfg.Limits.MaxWait)),
			Hint:    "ask again when the time has run out",
		}
	}
	return time.Duration(d), nil
}

// await waits for a job to end, for at most d, and returns it as it is then.
func (a *API) await(w http.ResponseWriter, r *http.Request, id string, d time.Duration) (jobhost.Job, error) {
	return awaitFor(a, w, r, d, a.server.Wait, a.server.Job, id)
}

// asked is what asks for one thing by its id.
type asked[T any] func(ctx context.Context, id string) (T, error)

// awaitFor waits for something to end, for at most d; when that is over it looks at how far it is.
func awaitFor[T any](a *API, w http.ResponseWriter, r *http.Request, d time.Duration, wait, look asked[T], id string) (T, error) {
	var none T
	call := callOf(w)
	if err := call.beginWait(); err != nil {
		return none, err
	}
	defer call.endWait()
	c := http.NewResponseController(w)
	// The server's deadlines are for requests that are answered at once.
	if err := errors.Join(c.SetReadDeadline(time.Time{}), c.SetWriteDeadline(time.Now().Add(d+a.cfg.Limits.Stall))); err != nil {
		return none, fmt.Errorf("set deadlines: %w", err)
	}
	thing, err := awaitUntil(r.Context(), a, time.Now().Add(d), wait, look, id)
	if err != nil || call.lease.tryTake(pageRoom) {
		return thing, err
	}
	// Many may have waited for the same: it is not held until there is room for the answer.
	thing = none
	if err := a.reserve(w, r, pageRoom); err != nil {
		return thing, err
	}
	return look(r.Context(), id)
}

func awaitUntil[T any](parent context.Context, a *API, until time.Time, wait, look asked[T], id string) (T, error) {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	defer context.AfterFunc(a.stopping, func() { cancel(errEnough) })()
	ctx, stop := context.WithDeadlineCause(ctx, until, errEnough)
	defer stop()
	thing, err := wait(ctx, id)
	if err != nil && ctx.Err() != nil && parent.Err() == nil {
		return look(parent, id)
	}
	return thing, err
}
