package api

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jobhost/jobhost/host/api/wire"
	"github.com/jobhost/jobhost/internal/budget"
)

// quota is what callers may take. Callers with the token have one, and all others
// have one of their own: however many they are, they take nothing of the first.
type quota struct {
	streams, waits budget.Budget
	answers        room
}

func newQuota(streams, waits int, answers int64, stall time.Duration) *quota {
	return &quota{
		streams: budget.Budget{Limit: int64(streams)},
		waits:   budget.Budget{Limit: int64(waits)},
		answers: room{limit: answers, stall: stall, writing: map[*lease]struct{}{}},
	}
}

// callOf returns what is known of a request by its answer.
func callOf(w http.ResponseWriter) *response { return w.(*response) }

// isTrusted reports whether a request has the token, and keeps its connection from being closed for others if so.
func (a *API) isTrusted(r *http.Request) bool {
	conn, _ := r.Context().Value(connKey{}).(*limitedConn)
	if given := r.Header["Authorization"]; len(given) == 1 && a.guard.matches(given[0]) {
		conn.trust()
		return true
	}
	conn.touch()
	return false
}

// recognize notes whose quota a request counts for.
func (a *API) recognize(w http.ResponseWriter, r *http.Request, to *route) {
	call := callOf(w)
	call.quota = a.anonymous
	if a.isTrusted(r) {
		call.quota = a.trusted
	}
	call.conn, _ = r.Context().Value(connKey{}).(*limitedConn)
	call.lease.room = &call.quota.answers
	call.lease.overdraws = to.access == writes
}

// beginWait begins a wait, during which no room is held for the answer.
func (w *response) beginWait() error {
	if err := takeOne(&w.quota.waits, "requests that wait"); err != nil {
		return err
	}
	w.lease.release()
	w.conn.occupy()
	return nil
}

func (w *response) endWait() {
	w.conn.leave()
	w.quota.waits.Free(1)
}

// reserve takes the room that an answer needs while it is made, or waits for it.
func (a *API) reserve(w http.ResponseWriter, r *http.Request, n int64) error {
	lease := &callOf(w).lease
	if lease.tryTake(n) {
		return nil
	}
	// The server's deadlines are for requests that are answered at once.
	c := http.NewResponseController(w)
	until := time.Now().Add(2 * a.cfg.Limits.Stall)
	if err := errors.Join(c.SetReadDeadline(time.Time{}), c.SetWriteDeadline(until)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("set deadlines: %w", err)
	}
	return lease.take(r.Context(), n)
}

// needsRoom reports whether an answer of a route takes room from the beginning. A submit has a
// small answer, unless it waits, and must not wait for readers; a stream is made as it is read.
func needsRoom(to *route) bool {
	switch first := to.answers[0].body; {
	case to.access == open, to.name == "submitJob", to.body == wire.NDJSON, to.body == wire.Bytes:
		return false
	default:
		return first != wire.Stream && first != ""
	}
}
