package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jobhost/jobhost"
)

// reload reloads one worker, or everything that has changed where the path names none.
// Compiling takes its time, so a reload counts as a request that waits. It goes
// on when the client leaves, but changes nothing then unless it was through.
func (a *API) reload(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if name != "" {
		if err := jobhost.CheckWorker(name); err != nil {
			return err
		}
	}
	call := callOf(w)
	if err := call.beginWait(); err != nil {
		return err
	}
	defer call.endWait()
	limit := a.cfg.Limits.MaxWait
	c := http.NewResponseController(w)
	// The server's deadlines are for requests that are answered at once.
	if err := errors.Join(c.SetReadDeadline(time.Time{}), c.SetWriteDeadline(time.Now().Add(limit+a.cfg.Limits.Stall))); err != nil {
		return fmt.Errorf("set deadlines: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), limit, &jobhost.Error{
		Code: jobhost.CodeUnavailable, Message: fmt.Sprintf("the reload took longer than %v, and nothing has changed", limit),
	})
	defer cancel()
	report, err := a.server.Reload(ctx, name)
	if err != nil {
		return err
	}
	return answerJSON(w, http.StatusOK, report)
}
