package api

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

// submit serves POST /v1/jobs.
func (a *API) submit(w http.ResponseWriter, r *http.Request) error {
	wait, err := a.waitOf(r)
	if err != nil {
		return err
	}
	m := a.borrow()
	defer a.giveBack(m)
	spec, err := a.readSpec(w, r, m)
	if err != nil {
		return err
	}
	receipt, err := a.server.Submit(r.Context(), spec)
	if err != nil {
		return err
	}
	status := http.StatusCreated
	if receipt.Deduplicated {
		status = http.StatusOK
	}
	w.Header().Set("Location", "/v1/jobs/"+receipt.ID)
	if wait > 0 {
		return a.answerWaited(w, r, receipt, status, wait)
	}
	m.out = append(wire.AppendReceipt(m.out[:0], &receipt), '\n')
	writeJSON(w, status, m.out)
	return nil
}

// readSpec reads the body into m and decodes it.
func (a *API) readSpec(w http.ResponseWriter, r *http.Request, m *memory) (spec jobhost.Spec, err error) {
	err = a.readBody(w, r, m, a.maxBody, errBodyTooLarge, func() (err error) {
		spec, err = m.decoder.Decode(m.in)
		return err
	})
	return spec, err
}

// readBody reads a body of up to most bytes into m.in and has it decoded, while it
// counts for what all bodies may take.
func (a *API) readBody(w http.ResponseWriter, r *http.Request, m *memory, most int, tooLarge error, decode func() error) error {
	size := r.ContentLength
	if size > int64(most) {
		return tooLarge
	}
	if size < 0 {
		size = int64(most) // it doesn't say
	}
	if !a.bodies.Take(size) {
		return errBusy
	}
	defer a.bodies.Free(size)
	body := http.MaxBytesReader(w, r.Body, int64(most))
	var err error
	if m.in, err = readAll(m.in[:0], body, int(max(0, r.ContentLength))); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return tooLarge
		}
		return &jobhost.Error{Code: jobhost.CodeInvalid, Message: "the body did not arrive", Cause: err}
	}
	return decode()
}

var errBusy = &jobhost.Error{
	Code: jobhost.CodeUnavailable, Message: "too many large requests are under way", RetryAfter: time.Second,
}

var errBodyTooLarge = &jobhost.Error{
	Code: jobhost.CodeTooLarge, Message: "the body is larger than the payload may be",
	Hint: "upload it first: POST /v1/payloads, jobhost submit --file; or raise max_payload in the manifest",
}

// readAll appends all of r to b. size is how much is expected; 0 = unknown.
func readAll(b []byte, r io.Reader, size int) ([]byte, error) {
	if want := size + 1; cap(b) < want { // one more, to see the end without growing
		b = make([]byte, 0, max(want, 512))
	}
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return b, err
		}
	}
}

// answerWaited waits for a job that was submitted and answers with it.
func (a *API) answerWaited(w http.ResponseWriter, r *http.Request, receipt jobhost.Receipt, status int, wait time.Duration) error {
	job, err := a.await(w, r, receipt.ID, wait)
	if err != nil {
		return err
	}
	if !job.State.Ended() {
		status = http.StatusAccepted
	}
	// The results are written one after the other: all of them may be large.
	head, err := json.Marshal(wire.Submitted{Job: job, Deduplicated: receipt.Deduplicated})
	if err != nil {
		return err
	}
	if job.State != jobhost.Succeeded {
		return answerBody(w, status, append(head, '\n'))
	}
	return a.answerResults(w, r, status, &job, append(head[:len(head)-1], `,"results":`...), "}\n")
}

func setJSON(w http.ResponseWriter, status int) {
	w.Header()["Content-Type"] = jsonType
	w.WriteHeader(status)
}

var jsonType = []string{wire.JSON}

// writeJSON answers with a body that is JSON already. A client that is gone
// doesn't get it, and that is all there is to know about it.
func writeJSON(w http.ResponseWriter, status int, body []byte) {
	setJSON(w, status)
	_, _ = w.Write(body)
}

// answerJSON answers with v.
func answerJSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return answerBody(w, status, append(body, '\n'))
}

// answerBody answers with a body that is JSON already and counts for what all
// answers may take.
func answerBody(w http.ResponseWriter, status int, body []byte) error {
	lease := &callOf(w).lease
	if err := lease.settle(int64(cap(body))); err != nil {
		return err
	}
	setJSON(w, status)
	_, _ = (&pacedWriter{w, http.NewResponseController(w), lease}).Write(body) // a client that is gone needs no answer
	return nil
}
