package api

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

// listKeys serves GET /v1/kv/{worker}.
func (a *API) listKeys(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	limit, err := limitOf(q)
	if err != nil {
		return err
	}
	page, err := a.server.Keys(r.Context(), jobhost.KeyFilter{
		Worker: r.PathValue("worker"), Prefix: q.Get("prefix"), Cursor: q.Get("cursor"), Limit: limit,
	})
	if err != nil {
		return err
	}
	if page.Keys == nil {
		page.Keys = []jobhost.Key{}
	}
	return answerJSON(w, http.StatusOK, page)
}

// getKey serves GET /v1/kv/{worker}/{key}.
func (a *API) getKey(w http.ResponseWriter, r *http.Request) error {
	key, value, err := a.server.KeyValue(r.Context(), r.PathValue("worker"), r.PathValue("key"))
	if err != nil {
		return err
	}
	if err := callOf(w).lease.settle(int64(len(value))); err != nil {
		return err
	}
	paced, err := a.pace(w)
	if err != nil {
		return err
	}
	// What a worker keeps must never be run by a browser as a page of this origin.
	h := w.Header()
	h.Set("Content-Type", wire.Bytes)
	h.Set("Content-Disposition", "attachment")
	h.Set("Content-Length", strconv.Itoa(len(value)))
	h.Set(wire.KeyVersion, strconv.FormatInt(key.Version, 10))
	h.Set(wire.KeyChangedAt, key.ChangedAt.Format(time.RFC3339Nano))
	if key.ExpiresAt != nil {
		h.Set(wire.KeyExpiresAt, key.ExpiresAt.Format(time.RFC3339Nano))
	}
	_, _ = paced.Write(value) // a client that is gone needs no answer
	return nil
}

// setKey serves PUT /v1/kv/{worker}/{key}.
func (a *API) setKey(w http.ResponseWriter, r *http.Request) error {
	var ttl jobhost.Duration
	if text := r.URL.Query().Get("ttl"); text != "" {
		var err error
		if ttl, err = jobhost.ParseDuration(text); err != nil || ttl <= 0 {
			return &jobhost.Error{
				Code: jobhost.CodeInvalid, Field: "ttl", Message: "ttl is not a duration above 0", Cause: err, Hint: jobhost.HintOf(err),
			}
		}
	}
	if !a.bodies.Take(jobhost.MaxValueBytes) {
		return errBusy
	}
	defer a.bodies.Free(jobhost.MaxValueBytes)
	value, err := readAll(nil, http.MaxBytesReader(w, r.Body, jobhost.MaxValueBytes), int(min(max(r.ContentLength, 0), jobhost.MaxValueBytes)))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return jobhost.CheckValue(make([]byte, jobhost.MaxValueBytes+1), 0)
	}
	if err != nil {
		return &jobhost.Error{Code: jobhost.CodeInvalid, Message: "the body did not arrive", Cause: err}
	}
	if err := a.server.SetKey(r.Context(), r.PathValue("worker"), r.PathValue("key"), value, time.Duration(ttl)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// deleteKey serves DELETE /v1/kv/{worker}/{key}.
func (a *API) deleteKey(w http.ResponseWriter, r *http.Request) error {
	if err := a.server.DeleteKey(r.Context(), r.PathValue("worker"), r.PathValue("key")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
