package api

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// pacedWriter writes an answer that takes as long as it takes: each write has its own
// time, so a client that reads gets all of it, and one that doesn't is cut off.
type pacedWriter struct {
	http.ResponseWriter
	c     *http.ResponseController
	stall time.Duration
}

// pace lifts the server's deadlines, which are for requests that are answered at once.
// That of reading too: when it passes, the request's context ends.
func (a *API) pace(w http.ResponseWriter) (*pacedWriter, error) {
	p := &pacedWriter{w, http.NewResponseController(w), a.cfg.Limits.Stall}
	for _, err := range []error{p.c.SetReadDeadline(time.Time{}), p.extend()} {
		if err != nil && !errors.Is(err, http.ErrNotSupported) {
			return nil, fmt.Errorf("set deadlines: %w", err)
		}
	}
	return p, nil
}

func (p *pacedWriter) extend() error { return p.c.SetWriteDeadline(time.Now().Add(p.stall)) }

// Write implements [io.Writer].
func (p *pacedWriter) Write(data []byte) (int, error) {
	if err := p.extend(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return p.ResponseWriter.Write(data)
}
