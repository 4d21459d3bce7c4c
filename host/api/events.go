package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

// watchEvents serves GET /v1/events.
func (a *API) watchEvents(w http.ResponseWriter, r *http.Request) error {
	query, fresh, err := a.eventQuery(r)
	if err != nil {
		return err
	}
	return a.serveStream(w, r, func(ctx context.Context, s *stream) error {
		if err := s.begin(ctx); err != nil {
			return err
		}
		if fresh {
			s.send("", wire.EventResync, whole([]byte("{}")))
		}
		return follow(ctx, s, a.server.Events(ctx, query), func(e *jobhost.Event) heading {
			return heading{id: a.epoch + "." + strconv.FormatUint(e.Seq, 10), name: string(e.Kind)}
		})
	})
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
	if query.Workflow = q.Get("workflow"); query.Workflow != "" {
		if err := jobhost.CheckAnyWorkflowID(query.Workflow); err != nil {
			return query, false, err
		}
	}
	if query.Worker = q.Get("worker"); query.Worker != "" {
		if err := jobhost.CheckWorker(query.Worker); err != nil {
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
