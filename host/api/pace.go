package api

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// pacedWriter writes an answer that takes as long as it takes: each piece has its own
// time, so a client that reads gets all of it, and one that doesn't is cut off.
type pacedWriter struct {
	http.ResponseWriter
	c     *http.ResponseController
	lease *lease
}

// piece is how much is written at a time, and has a time of its own.
const piece = 64 << 10

// pace lifts the server's deadlines, which are for requests that are answered at once.
// That of reading too: when it passes, the request's context ends.
func (a *API) pace(w http.ResponseWriter) (*pacedWriter, error) {
	p := &pacedWriter{w, http.NewResponseController(w), &callOf(w).lease}
	if err := p.c.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, fmt.Errorf("set deadline: %w", err)
	}
	if err := p.lease.extend(p.c); err != nil {
		return nil, fmt.Errorf("set deadline: %w", err)
	}
	return p, nil
}

// Write implements [io.Writer].
func (p *pacedWriter) Write(data []byte) (written int, err error) {
	for len(data) > 0 && err == nil {
		if err = p.lease.extend(p.c); err != nil {
			break
		}
		var n int
		n, err = p.ResponseWriter.Write(data[:min(len(data), piece)])
		written, data = written+n, data[n:]
	}
	return written, err
}
