package firestorestate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/state"
)

// listener follows a job for all its feeds in this process.
type listener struct {
	store  *Store
	job    *jobDoc         // as it was found; when it was made is in born
	ctx    context.Context // of its own life: it ends with the last feed
	cancel context.CancelFunc
	ready  chan struct{} // closed when what there is was handed over, or the end came
	done   chan struct{} // closed when its goroutine has ended

	mu    sync.Mutex // protects the fields below
	born  time.Time  // when the job's document was made; zero = it isn't there yet
	feeds map[*source]state.Feed
	// seen are the states that the listener has brought, by the ids of their documents.
	seen map[string]sight
	// ahead are versions that were handed over before it brought them.
	ahead map[string]int64
	told  bool // what there is was handed over
	live  bool // it is being told what changes
	waits []*wait
	turns map[string]chan struct{} // of writes to a document that are under way
	ended error                    // why there will be no more; nil = there will
}

// sight is a state as the listener has brought it last.
type sight struct {
	version int64
	born    time.Time // when its document was made
}

// wait is a write that waits for the listener to bring it.
type wait struct {
	id      string
	version int64
	over    chan struct{} // closed when it came, or will not
}

func newListener(s *Store, job *jobDoc) *listener {
	l := &listener{
		store: s, job: job, born: job.born, ready: make(chan struct{}), done: make(chan struct{}),
		feeds: map[*source]state.Feed{}, seen: map[string]sight{}, ahead: map[string]int64{}, turns: map[string]chan struct{}{},
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// errStale: the job has been made since it was looked at.
var errStale = errors.New("the job has been made since it was looked at")

// add adds a feed of a job as it was found. Errors: errStale, or why the listener has
// ended, which it may do now: others know of its end before it does.
func (l *listener) add(src *source, found *jobDoc, feed state.Feed) (told bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ended != nil:
		return false, l.ended
	case found.born.Equal(l.born):
	case l.born.IsZero():
		if err := l.bornLocked(found); err != nil {
			return false, err
		}
	case !found.read.After(l.born): // also in the same moment: emulators' clocks have milliseconds
		return false, errStale
	default:
		l.endLocked(state.ErrDeleted)
		return false, l.ended
	}
	l.feeds[src] = feed
	return l.told, nil
}

// expecting reports whether the job isn't there yet.
func (l *listener) expecting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended == nil && l.born.IsZero()
}

// bornLocked takes notice of a job that wasn't there. With another number of tasks than
// it is followed with here it can't be gone on with.
func (l *listener) bornLocked(now *jobDoc) error {
	switch {
	case !now.DeletedAt.IsZero():
		l.endLocked(state.ErrDeleted)
	case now.Tasks != l.job.Tasks:
		l.endLocked(otherTasks(now, l.job.Tasks))
	default:
		l.born = now.born
	}
	return l.ended
}

// otherTasks is the end of those who have opened a job with another number of tasks than
// it was then made with.
func otherTasks(now *jobDoc, tasks int) error {
	return &jobhost.Error{
		Code: jobhost.CodeConflict, Field: "tasks",
		Message: fmt.Sprintf("the states of job %s have been begun elsewhere with %d tasks, not %d", now.Key(), now.Tasks, tasks),
		Hint:    "open the job again: it has that number now",
	}
}

// check holds a job, as a write has found it, against what the listener follows; nil =
// there is none. expected says that it wasn't there when the write began.
func (l *listener) check(now *jobDoc, expected bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ended != nil:
		return l.ended
	case now == nil && expected:
		return nil // the write makes it, unless another does
	case now == nil:
		return state.ErrDeleted
	case l.born.IsZero():
		return l.bornLocked(now)
	case !now.born.Equal(l.born) || !now.DeletedAt.IsZero():
		return state.ErrDeleted
	}
	return nil
}

// made takes notice of the job that a write of this process has made.
func (l *listener) made(born time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.born.IsZero() {
		l.born = born
	}
}

// leave takes a feed away; last = there is none left, and the listener ends.
func (l *listener) leave(src *source) (last bool) {
	s := l.store
	s.mu.Lock()
	defer s.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.feeds, src)
	if len(l.feeds) > 0 {
		return false
	}
	l.endLocked(state.ErrClosed)
	if s.listeners[l.job.Key()] == l {
		delete(s.listeners, l.job.Key())
	}
	return true
}

// ended ends the feeds of a job in this process. Those elsewhere hear from their
// listeners.
func (s *Store) ended(job state.Job, reason error) {
	s.mu.Lock()
	l := s.listeners[job.Key()]
	s.mu.Unlock()
	if l != nil {
		l.end(reason)
	}
}

// Err says why the listener has ended; nil = it has not.
func (l *listener) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

func (l *listener) end(reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endLocked(reason)
}

func (l *listener) endLocked(reason error) {
	if l.ended != nil {
		return
	}
	l.ended = reason
	for _, feed := range l.feeds {
		feed.End(reason)
	}
	l.lostLocked()
	if !l.told {
		close(l.ready)
	}
	l.cancel()
}

// lostLocked lets go of all who wait for the listener.
func (l *listener) lostLocked() {
	l.live = false
	for _, w := range l.waits {
		close(w.over)
	}
	l.waits = nil
}

// run listens until the listener has ended. It is the goroutine of the listener.
func (l *listener) run() {
	defer close(l.done)
	defer l.forget()
	log := l.store.opts.Logger.With(logkey.Job, l.job.Key())
	backoff := l.store.opts.Backoff
	failed, pause := 0, backoff.First
	for {
		lived, err := l.listen(l.ctx)
		if l.Err() != nil {
			return
		}
		if failed++; lived {
			failed, pause = 0, backoff.First
			if f := l.store.opts.Observer.Reconnected; f != nil {
				f()
			}
		}
		if failed >= backoff.Attempts {
			log.Error("🔴 gave up listening to states", logkey.Attempt, failed, logkey.Error, err)
			l.end(l.store.fault(l.ctx, err))
			return
		}
		log.Warn("🟡 lost the listener of states", logkey.Attempt, failed, logkey.Duration, pause, logkey.Error, err)
		select {
		case <-time.After(spread(pause, 0.2)):
		case <-l.ctx.Done():
			return
		}
		pause = min(2*pause, backoff.Max)
	}
}

// spread makes a pause longer or shorter by up to a part of it, so that not all who
// lost the same connection come back at once.
func spread(pause time.Duration, part float64) time.Duration {
	return time.Duration(float64(pause) * (1 - part + 2*part*rand.Float64())) //nolint:gosec // no secret
}

// forget makes way for another listener of the job.
func (l *listener) forget() {
	s := l.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listeners[l.job.Key()] == l {
		delete(s.listeners, l.job.Key())
	}
}

// turn waits until no other write of this process to a document is under way.
func (l *listener) turn(ctx context.Context, id string) (release func(), err error) {
	for {
		l.mu.Lock()
		other := l.turns[id]
		if other == nil {
			mine := make(chan struct{})
			l.turns[id] = mine
			l.mu.Unlock()
			return func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				delete(l.turns, id)
				close(mine)
			}, nil
		}
		l.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// await waits until the listener has brought what was written. If it is away, or
// takes too long, the state is handed over without it; so the order is that of the
// store as long as that says what it is.
func (l *listener) await(ctx context.Context, s state.State) {
	id := stateID(s.TaskID, s.Tag)
	w := &wait{id: id, version: s.Version, over: make(chan struct{})}
	l.mu.Lock()
	if l.seen[id].version >= s.Version || l.ended != nil {
		l.mu.Unlock()
		return
	}
	if l.live {
		l.waits = append(l.waits, w)
		l.mu.Unlock()
		timer := time.NewTimer(l.store.opts.FeedWait)
		defer timer.Stop()
		select {
		case <-w.over:
		case <-timer.C:
		case <-ctx.Done():
		}
		l.mu.Lock()
	}
	defer l.mu.Unlock()
	l.waits = slices.DeleteFunc(l.waits, func(other *wait) bool { return other == w })
	if max(l.seen[id].version, l.ahead[id]) < s.Version && l.ended == nil {
		l.ahead[id] = s.Version
		l.putLocked(s)
	}
}

func (l *listener) putLocked(states ...state.State) {
	for _, feed := range l.feeds {
		feed.Put(states...)
	}
}

// decode reads a document; ok = false: it is no state, and left out.
func (l *listener) decode(d *pb.Document) (_ state.State, ok bool) {
	s, err := decodeState(l.job.Job, d)
	if err != nil {
		l.store.opts.Logger.Warn("🟡 left out a document", logkey.Job, l.job.Key(), logkey.Error, err)
	}
	return s, err == nil
}
