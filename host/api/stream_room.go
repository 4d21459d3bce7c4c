package api

import (
	"context"
	"net/http"
	"time"
)

// smallEvent is how much an event may hold in memory without taking room for it: there are some hundreds
// of streams.
const smallEvent = 64 << 10

// hold waits for room for an event, if it is a large one.
func (s *stream) hold(ctx context.Context, bytes int) error {
	if s.replaying || bytes <= smallEvent {
		return nil
	}
	if err := s.lease.take(ctx, int64(bytes)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leased = true
	return nil
}

// replay says that the lease holds room for all that comes until the end of a replay.
func (s *stream) replay() {
	s.replaying = true
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leased = true
}

// written gives back the room of an event that was written, or of a replay with its last one.
func (s *stream) written(replayed bool) {
	s.replaying = s.replaying && !replayed
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leased && !s.replaying {
		s.leased = false
		s.lease.release()
	}
}

// deadlineLocked gives the reader time for what is written next: less than otherwise while it holds room
// that others wait for.
func (s *stream) deadlineLocked() error {
	if s.leased {
		return s.lease.extend(s.c)
	}
	return s.c.SetWriteDeadline(time.Now().Add(s.stall))
}

// replayed takes room for a replay, of which tell asks once its size is known, and for the event that is
// being written. A replay that finds no room is dropped, and made again when there is some: what waits
// must hold nothing.
func (a *API) replayed(ctx context.Context, w http.ResponseWriter, r *http.Request, s *stream, tell func(room func(bytes int) error) error) error {
	for need := int64(pageRoom); ; {
		if err := a.reserve(w, r.WithContext(ctx), need); err != nil {
			return err
		}
		missing := int64(0)
		err := tell(func(bytes int) error {
			size := pageRoom + int64(bytes)
			if err := s.lease.settle(size); err != nil {
				missing = size
				return err
			}
			s.replay()
			return nil
		})
		if missing <= need {
			return err
		}
		need = missing
	}
}
