package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

// uploadTime bounds an upload as a whole: none stays open forever because of a
// byte now and then.
const uploadTime = time.Hour

// upload serves POST /v1/payloads.
func (a *API) upload(w http.ResponseWriter, r *http.Request) error {
	if err := takeOne(&a.uploads, "uploads under way"); err != nil {
		return err
	}
	defer a.uploads.Free(1)
	ctx, cancel := context.WithTimeoutCause(r.Context(), uploadTime, errSlowUpload)
	defer cancel()
	c := http.NewResponseController(w)
	// The answer comes after the last byte, whenever that is.
	if err := c.SetWriteDeadline(time.Now().Add(uploadTime + a.cfg.Limits.Stall)); err != nil {
		return fmt.Errorf("upload: %w", err)
	}
	body := &arriving{r: &pacedReader{r.Body, c, a.cfg.Limits.Stall}}
	upload, err := a.server.Upload(ctx, body)
	switch {
	case body.err != nil && errors.Is(err, body.err):
		return &jobhost.Error{Code: jobhost.CodeInvalid, Message: "the body did not arrive", Cause: err}
	case err != nil:
		return err
	}
	return answerJSON(w, http.StatusCreated, upload)
}

var errSlowUpload = &jobhost.Error{Code: jobhost.CodeUnavailable, Message: fmt.Sprintf("the upload took longer than %v", uploadTime)}

// arriving remembers why a body broke off.
type arriving struct {
	r   io.Reader
	err error
}

func (a *arriving) Read(p []byte) (int, error) {
	n, err := a.r.Read(p)
	if err != nil && err != io.EOF {
		a.err = err
	}
	return n, err
}

// getPayload serves GET /v1/jobs/{id}/payload.
func (a *API) getPayload(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	content, err := a.server.OpenPayload(r.Context(), id)
	if err != nil {
		return err
	}
	defer content.Close()
	return a.stream(w, content, id+".payload")
}

// streamBytes is how much of a content is in memory.
const streamBytes = 64 << 10

// stream answers with a content under a file name. Each piece has its own time.
// What can't be read is found out before the answer begins, if it is at the
// beginning; later, the answer breaks off before its Content-Length.
func (a *API) stream(w http.ResponseWriter, content jobhost.Content, name string) error {
	if err := callOf(w).lease.settle(streamRoom + min(content.Size, int64(a.cfg.Whole))); err != nil {
		return err
	}
	paced, err := a.pace(w)
	if err != nil {
		return err
	}
	buffer := make([]byte, min(content.Size+1, streamBytes))
	n, err := io.ReadFull(content, buffer)
	for begun := false; ; n, err = io.ReadFull(content, buffer) {
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !end {
			return err // without an answer yet a problem, else the connection is cut
		}
		if !begun {
			begun = true
			// What people and workers wrote must never be run by a browser as a page of this origin.
			h := w.Header()
			h.Set("Content-Type", wire.Bytes)
			h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s"`, name))
			h.Set("Content-Length", strconv.FormatInt(content.Size, 10))
		}
		if _, err := paced.Write(buffer[:n]); err != nil || end {
			return nil //nolint:nilerr // the client is gone, or has it all
		}
	}
}
