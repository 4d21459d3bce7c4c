package follow

import (
	"context"

	"github.com/jobhost/jobhost/state"
)

// Source is a [state.Source] but for the writing.
type Source struct {
	*Life
	lives *Lives
	tasks int // set before anybody has it

	closed   bool // protected by the life's lock, with the writes under way
	underWay int
}

// Open makes a source. read hands what there is of the job to [Source.Tell], unless it is marked, and returns its row.
func (s *Lives) Open(ctx context.Context, job state.Job, tasks int, feed state.Feed, read func(*Source) (Row, error)) (*Source, error) {
	src, err := s.follow(job, feed)
	if err != nil {
		return nil, err
	}
	if err := src.begin(ctx, tasks, read); err != nil {
		_ = src.Close() // never fails
		return nil, err
	}
	return src, nil
}

// follow makes a source of a life that has not ended.
func (s *Lives) follow(job state.Job, feed state.Feed) (*Source, error) {
	for {
		l := s.Join(job)
		src := &Source{Life: l, lives: s}
		added := l.add(src, feed)
		switch {
		case s.Closed(): // looked at now, since Close ends what it finds
			_ = src.Close() // never fails
			return nil, state.ErrClosed
		case added:
			return src, nil
		}
		s.Leave(l)
	}
}

// begin hands what there is to the feed.
func (s *Source) begin(ctx context.Context, tasks int, read func(*Source) (Row, error)) error {
	found, err := read(s)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return s.lives.Explain("read states", err)
	case found.Marked:
		return state.Marked(s.Job)
	}
	s.tasks = s.settle(found, tasks)
	if s.tasks == 0 {
		return state.NotFound(s.Job)
	}
	return nil
}

// Tell hands states to the feed, if it is still there.
func (s *Source) Tell(states []state.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if feed := s.feeds[s]; feed != nil {
		feed.Put(states...)
	}
}

// Tasks implements [state.Source].
func (s *Source) Tasks() int { return s.tasks }

// Close implements [state.Source].
func (s *Source) Close() error {
	if s.leave() {
		s.lives.Leave(s.Life)
	}
	return nil
}

// leave ends the source, and reports whether it is over with it: writes that are
// under way hold the life.
func (s *Source) leave() (over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	over = !s.closed && s.underWay == 0
	s.closed = true
	delete(s.feeds, s)
	return over
}

// Write is a state on its way to be written. The writer fills in what became of it and calls Done.
type Write struct {
	*Source
	Asked   state.State
	Stored  state.State
	News    bool  // Stored is not what was there before
	Refusal error // nothing was written
	done    chan error
}

// Set hands a state to the writer, and waits for what becomes of it.
func (s *Source) Set(ctx context.Context, st state.State, write func(*Write)) (state.State, error) {
	if ctx.Err() != nil {
		return state.State{}, context.Cause(ctx)
	}
	if err := s.beginWrite(); err != nil {
		return state.State{}, err
	}
	st.JobID = s.Job.ID
	if st.EventID == "" {
		st.EventID = s.lives.eventID()
	}
	w := &Write{Source: s, Asked: st, done: make(chan error, 1)}
	write(w)
	select {
	case err := <-w.done:
		switch {
		case err != nil:
			return state.State{}, s.lives.Explain("set state", err)
		case w.Refusal != nil:
			return state.State{}, w.Refusal
		}
		return w.Stored, nil
	case <-ctx.Done():
		return state.State{}, context.Cause(ctx)
	}
}

// beginWrite counts a write, which Done ends.
func (s *Source) beginWrite() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended != nil:
		return s.ended
	case s.closed:
		return state.ErrClosed
	}
	s.underWay++
	return nil
}

// Done tells the feeds and the caller.
func (w *Write) Done(err error) {
	if w.finish(err == nil && w.News) {
		w.lives.Leave(w.Life)
	}
	w.done <- err
}

// finish tells the feeds, and reports whether the source is over with this.
func (w *Write) finish(isNews bool) (over bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if isNews {
		w.tellLocked(w.Stored)
	}
	w.underWay--
	return w.closed && w.underWay == 0
}
