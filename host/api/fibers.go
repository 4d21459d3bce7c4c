package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

const (
	// maxFiberBody bounds the body that starts a fiber: its beginning in base64, and
	// room to spare.
	maxFiberBody = (jobhost.MaxFiberMessage+2)/3*4 + 64<<10
	// startWait is how long a start that says nothing else waits for its turn.
	startWait = 30 * time.Second
)

var aFiber = answers[wire.Fiber](200, "The fiber.")

// fiberRoutes are those of fibers.
func (a *API) fiberRoutes() []route {
	return []route{
		{"POST", "/v1/fibers", "startFiber", "Start a fiber", writes, wire.JSON, []param{
			{"wait", `Wait this long for a turn if as many fibers live as may, and the host lets starts wait, such as "5s"; default: 30s.`},
		}, []answer{
			answers[wire.Fiber](201, "It is running."), answers[wire.Fiber](200, "It was running already, with the same settings."),
		}, a.startFiber},
		{"GET", "/v1/fibers", "listFibers", "List fibers", reads, "", []param{
			{"worker", "Only fibers of this worker."},
			{"status", "Only fibers in this status."},
			{"cursor", "Where to go on: the next of the previous page."},
			{"limit", "The size of a page, 1 to 1000; default 50."},
		}, []answer{answers[wire.FiberPage](200, "A page of fibers by id, including ended ones that are remembered.")}, a.listFibers},
		{"GET", "/v1/fibers/{id}", "getFiber", "Show a fiber", reads, "", nil, []answer{aFiber}, a.getFiber},
		{"POST", "/v1/fibers/{id}/messages", "sendFiber", "Send a fiber a message", writes, wire.Bytes, []param{
			{"wait", `Wait this long for room if its queue is full, such as "30s".`},
		}, []answer{{204, "It is in the queue of the fiber.", "", nil}}, a.sendFiber},
		{"POST", "/v1/fibers/{id}/pause", "pauseFiber", "Pause a fiber: it accepts no messages", writes, "", nil, []answer{aFiber}, a.pauseFiber},
		{"POST", "/v1/fibers/{id}/resume", "resumeFiber", "Resume a fiber", writes, "", nil, []answer{aFiber}, a.resumeFiber},
		{"POST", "/v1/fibers/{id}/interrupt", "interruptFiber", "Ask a fiber to end", writes, "", nil, []answer{aFiber}, a.interruptFiber},
		{"GET", "/v1/fibers/{id}/watch", "watchFiber", "Follow the outputs of a fiber", reads, "", []param{
			{"after", "Begin after the output of this number, as far as it is remembered; the header Last-Event-ID does the same and sees another fiber of the id too."},
			{"replay", "true: begin with what is remembered."},
			{"created_at", "Only the fiber of the id that was created then, as RFC 3339."},
		}, []answer{
			{200, "Server-sent events called output until one is called end; the data is JSON.", wire.Stream, []reflect.Type{reflect.TypeFor[wire.FiberOutput]()}},
		}, a.watchFiber},
	}
}

// startFiber serves POST /v1/fibers.
func (a *API) startFiber(w http.ResponseWriter, r *http.Request) error {
	wait, err := a.waitOf(r)
	if err != nil {
		return err
	}
	if r.URL.Query().Get("wait") == "" {
		wait = min(startWait, a.cfg.Limits.MaxWait)
	}
	m := a.borrow()
	defer a.giveBack(m)
	var spec jobhost.FiberSpec
	err = a.readBody(w, r, m, maxFiberBody, errFiberTooLarge, func() (err error) {
		spec, err = m.decoder.DecodeFiber(m.in)
		return err
	})
	if err != nil {
		return err
	}
	began := time.Now()
	var f jobhost.Fiber
	err = a.patiently(w, r, wait, errNoTurn, func(ctx context.Context) (err error) {
		f, err = a.server.StartFiber(ctx, spec)
		return err
	})
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/fibers/"+f.ID)
	status := http.StatusCreated
	if f.CreatedAt.Before(began) {
		status = http.StatusOK
	}
	return answerJSON(w, status, wire.NewFiber(f))
}

var (
	errFiberTooLarge = &jobhost.Error{
		Code: jobhost.CodeTooLarge, Field: "init", Message: fmt.Sprintf("the body is larger than an init of %d bytes needs", jobhost.MaxFiberMessage),
		Hint: "send the fiber the rest as messages",
	}
	errMessageTooLarge = &jobhost.Error{
		Code: jobhost.CodeTooLarge, Message: fmt.Sprintf("the message is larger than %d bytes", jobhost.MaxFiberMessage),
		Hint: "send it in parts",
	}
	// errNoTurn is distinguished from other reasons to be exhausted by its field.
	errNoTurn = &jobhost.Error{
		Code: jobhost.CodeExhausted, Field: "wait", RetryAfter: time.Second,
		Message: "as many fibers live as may, and the time to wait ran out", Hint: "wait for longer, or interrupt a fiber that isn't needed",
	}
)

// patiently does what may wait for as long as wait, until the host stops. When that
// ends it, it returns late.
func (a *API) patiently(w http.ResponseWriter, r *http.Request, wait time.Duration, late error, do func(context.Context) error) error {
	call := callOf(w)
	if err := call.beginWait(); err != nil {
		return err
	}
	defer call.endWait()
	c := http.NewResponseController(w)
	// The server's deadlines are for requests that are answered at once.
	if err := errors.Join(c.SetReadDeadline(time.Time{}), c.SetWriteDeadline(time.Now().Add(wait+a.cfg.Limits.Stall))); err != nil {
		return fmt.Errorf("set deadlines: %w", err)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(a.stopping, func() { cancel(errStopping) })()
	ctx, stop := context.WithTimeoutCause(ctx, wait, errEnough)
	defer stop()
	err := do(ctx)
	switch {
	case err == nil || r.Context().Err() != nil:
		return err
	case errors.Is(err, errEnough):
		return late
	case errors.Is(err, errStopping):
		return errStopping
	}
	return err
}

func (a *API) listFibers(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	limit, err := limitOf(q)
	if err != nil {
		return err
	}
	page, err := a.server.Fibers(r.Context(), jobhost.FiberFilter{
		Worker: q.Get("worker"), Status: jobhost.FiberStatus(q.Get("status")), Cursor: q.Get("cursor"), Limit: limit,
	})
	if err != nil {
		return err
	}
	shown := wire.FiberPage{Fibers: make([]wire.Fiber, len(page.Fibers)), Next: page.Next}
	for i, f := range page.Fibers {
		f.Result = nil // which would be most of the answer
		shown.Fibers[i] = wire.Fiber{Fiber: f}
	}
	return answerJSON(w, http.StatusOK, shown)
}

func (a *API) getFiber(w http.ResponseWriter, r *http.Request) error {
	return answerFiber(w, r, a.server.Fiber)
}

func (a *API) pauseFiber(w http.ResponseWriter, r *http.Request) error {
	return answerFiber(w, r, a.server.PauseFiber)
}

func (a *API) resumeFiber(w http.ResponseWriter, r *http.Request) error {
	return answerFiber(w, r, a.server.ResumeFiber)
}

func (a *API) interruptFiber(w http.ResponseWriter, r *http.Request) error {
	return answerFiber(w, r, a.server.InterruptFiber)
}

func answerFiber(w http.ResponseWriter, r *http.Request, ask func(context.Context, string) (jobhost.Fiber, error)) error {
	id := r.PathValue("id")
	if err := jobhost.CheckFiber(id); err != nil {
		return err
	}
	f, err := ask(r.Context(), id)
	if err != nil {
		return err
	}
	return answerJSON(w, http.StatusOK, wire.NewFiber(f))
}

// sendFiber serves POST /v1/fibers/{id}/messages.
func (a *API) sendFiber(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	wait, err := a.waitOf(r)
	if err == nil {
		err = jobhost.CheckFiber(id)
	}
	if err != nil {
		return err
	}
	m := a.borrow()
	defer a.giveBack(m)
	var message []byte
	err = a.readBody(w, r, m, jobhost.MaxFiberMessage, errMessageTooLarge, func() error {
		message = bytes.Clone(m.in) // the queue keeps it
		return nil
	})
	if err != nil {
		return err
	}
	err = a.server.SendFiber(r.Context(), id, message, false)
	if wait > 0 && jobhost.CodeOf(err) == jobhost.CodeExhausted && a.parked.Take(int64(len(message))) {
		defer a.parked.Free(int64(len(message)))
		err = a.patiently(w, r, wait, err, func(ctx context.Context) error { return a.server.SendFiber(ctx, id, message, true) })
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// watchFiber serves GET /v1/fibers/{id}/watch. The id of an event is the number of
// the output, with the time when the fiber was created before it: the numbers of
// another fiber with the same id are others.
func (a *API) watchFiber(w http.ResponseWriter, r *http.Request) error {
	query, err := fiberQuery(r)
	if err != nil {
		return err
	}
	f, err := a.server.Fiber(r.Context(), query.ID)
	if err != nil {
		return err
	}
	if query.CreatedAt.IsZero() {
		query.CreatedAt = f.CreatedAt
	}
	ended := f.Status.Ended() || !query.CreatedAt.Equal(f.CreatedAt)
	if !query.Replay && query.After == 0 && !ended {
		// Whatever is published once the reader has seen that the stream has begun is for it.
		query.Replay, query.After = true, f.Emitted
	}
	life := strconv.FormatInt(query.CreatedAt.UnixNano(), 36)
	return a.serveStream(w, r, func(ctx context.Context, s *stream) error {
		if !ended {
			if err := s.begin(ctx); err != nil {
				return err
			}
		}
		return follow(ctx, s, a.server.WatchFiber(ctx, query), func(o *jobhost.FiberOutput) heading {
			return heading{
				id: life + "." + strconv.FormatUint(o.Seq, 10), name: wire.EventOutput, room: len(o.Data),
				json: wire.FiberOutputJSON(*o),
			}
		})
	})
}

// fiberQuery reads what is to be followed.
func fiberQuery(r *http.Request) (query jobhost.FiberQuery, err error) {
	q := r.URL.Query()
	query.ID = r.PathValue("id")
	if err = jobhost.CheckFiber(query.ID); err != nil {
		return query, err
	}
	if query.Replay, err = flagOf(q, "replay"); err != nil {
		return query, err
	}
	if text := q.Get("created_at"); text != "" {
		if query.CreatedAt, err = wire.ParseTime("created_at", text); err != nil {
			return query, err
		}
	}
	if text := q.Get("after"); text != "" {
		if query.After, err = parseSeq("after", text); err != nil {
			return query, err
		}
		query.Replay = true
	}
	switch ids := r.Header["Last-Event-Id"]; {
	case len(ids) > 1:
		return query, badSeq("Last-Event-ID")
	case len(ids) == 1 && ids[0] != "":
		life, seq, err := parseEventID(ids[0])
		if err != nil {
			return query, err
		}
		nanos, err := strconv.ParseInt(life, 36, 64)
		if err != nil {
			return query, badSeq("Last-Event-ID")
		}
		query.CreatedAt, query.After, query.Replay = time.Unix(0, nanos), seq, true
	}
	return query, nil
}
