package state

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
)

// Board is a job in memory, as its store knows it. It is for all managers of the
// job in this process, and safe for many goroutines.
type Board struct {
	job     Job
	observe Observer
	epoch   string // of its cursors: another one for every board
	store   Store
	source  Source       // set by NewBoard
	close   func() error // closes the source once

	mu     sync.RWMutex // protects the fields below
	tasks  int
	states map[key]*entry
	tags   map[string]*stream
	byTask map[int]*lowest
	all    lowest
	silent int    // the first task that has reported nothing; all before have
	bytes  int    // of all texts
	seq    uint64 // of the last change
	live   bool   // what comes from now on is news
	subs   map[*Subscription]struct{}
	ended  error // why there will be no changes any more; nil = there will
}

// key names a state of a job.
type key struct {
	task int
	tag  string
}

// NewBoard opens a job of a store, which the caller closes after it: see
// [Store.Open]. Errors besides: invalid.
func NewBoard(ctx context.Context, store Store, job Job, tasks int, observe Observer) (*Board, error) {
	if err := errors.Join(job.Check(), checkTasks(tasks)); err != nil {
		return nil, err
	}
	b := &Board{
		job: job, store: store, observe: observe, epoch: strconv.FormatUint(rand.Uint64(), 36),
		states: map[key]*entry{}, tags: map[string]*stream{}, byTask: map[int]*lowest{},
		all: lowest{view: ofAll}, subs: map[*Subscription]struct{}{},
	}
	source, err := store.Open(ctx, job, tasks, b)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.source, b.tasks, b.live = source, source.Tasks(), true
	b.close = sync.OnceValue(source.Close)
	return b, nil
}

// Job returns the names of the job.
func (b *Board) Job() Job { return b.job }

// Tasks returns the job's number of tasks.
func (b *Board) Tasks() int { return b.tasks }

// Err says why the board tells of no changes any more; nil = it does.
func (b *Board) Err() error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.ended
}

// Size returns how many states there are, and the bytes of their texts.
func (b *Board) Size() (states, bytes int) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.states), b.bytes
}

// Put implements [Feed].
func (b *Board) Put(states ...State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended != nil {
		return
	}
	for i := range states {
		b.putLocked(&states[i])
	}
}

func (b *Board) putLocked(s *State) {
	k := key{s.TaskID, s.Tag}
	e := b.states[k]
	isNew := e == nil
	var known int64
	if isNew {
		e = &entry{}
		b.states[k] = e
	} else if known = e.state.Version; s.Version <= known {
		return
	}
	// The host's own versions follow the course of a task, which may go two steps at once.
	own := strings.HasPrefix(s.Tag, jobhost.ReservedTags)
	if missed := s.Version - known - 1; missed > 0 && b.live && !own && b.observe.Drift != nil {
		b.observe.Drift(missed)
	}
	b.seq++
	size := sizeOf(s)
	b.bytes += size - e.size
	now := *s
	now.JobID = b.job.ID
	e.state, e.seq, e.size = &now, b.seq, size
	b.rankLocked(e, isNew)
	b.tellLocked(e)
}

// rankLocked puts a state where it belongs among the others.
func (b *Board) rankLocked(e *entry, isNew bool) {
	tag, task := e.state.Tag, e.state.TaskID
	t, of := b.tags[tag], b.byTask[task]
	if t == nil {
		t = &stream{lowest: lowest{view: ofTag}}
		b.tags[tag] = t
	}
	if of == nil {
		of = &lowest{view: ofTask}
		b.byTask[task] = of
	}
	t.add(e, isNew)
	of.add(e, isNew)
	b.all.add(e, isNew)
	for b.states[key{t.missing, tag}] != nil {
		t.missing++
	}
	for b.byTask[b.silent] != nil {
		b.silent++
	}
	b.wakeLocked(tag, t)
}

// tellLocked passes a change on to those who watch it.
func (b *Board) tellLocked(e *entry) {
	var event *Event
	for s := range b.subs {
		if !s.selects(e.state) {
			continue
		}
		if event == nil {
			event = &Event{State: *e.state, Cursor: b.cursorLocked()}
		}
		s.sendLocked(event, e.size)
	}
	if event != nil && b.observe.Delivered != nil {
		b.observe.Delivered(time.Since(e.state.Timestamp))
	}
}

// End implements [Feed].
func (b *Board) End(reason error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended != nil {
		return
	}
	b.ended = reason
	for s := range b.subs {
		s.endLocked(reason)
	}
	for _, t := range b.tags {
		t.release()
	}
}

// Close ends the board, with everything that waits at it. Closing twice is fine.
func (b *Board) Close() error {
	b.End(ErrClosed)
	return b.close()
}

// Set makes a state of the job durable and returns it as it is stored. Once it
// returns, the board has it. Errors: invalid, too_large, exhausted (the job has
// too many states, or too large ones), and those of the store.
func (b *Board) Set(ctx context.Context, s State) (State, error) {
	began := time.Now()
	stored, err := b.set(ctx, s)
	if b.observe.Wrote != nil {
		b.observe.Wrote(time.Since(began), err)
	}
	return stored, err
}

func (b *Board) set(ctx context.Context, s State) (State, error) {
	s.JobID = b.job.ID
	if s.SchemaVersion == 0 {
		s.SchemaVersion = 1
	}
	if err := errors.Join(s.Check(), checkTask(s.TaskID, b.tasks)); err != nil {
		return State{}, err
	}
	if err := b.checkRoom(&s); err != nil {
		return State{}, err
	}
	return b.source.Set(ctx, s)
}

// checkRoom sees that the board stays within its bounds. Writes that are under way
// may exceed them by what they bring.
func (b *Board) checkRoom(s *State) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.ended != nil {
		return b.ended
	}
	e := b.states[key{s.TaskID, s.Tag}]
	more := sizeOf(s)
	switch {
	case e == nil && len(b.states) >= jobhost.MaxStatesPerJob:
		return &jobhost.Error{Code: jobhost.CodeExhausted, Message: "the job has " + itoa(len(b.states)) + " states: there can't be more"}
	case e != nil:
		more -= e.size
	}
	if more > 0 && b.bytes+more > jobhost.MaxStateBytesPerJob {
		return &jobhost.Error{Code: jobhost.CodeExhausted, Message: "the states of the job have " + itoa(b.bytes) + " bytes: there is no room for more"}
	}
	return nil
}

// sizeOf is what a state takes for its texts.
func sizeOf(s *State) int { return len(s.Tag) + len(s.Message) + len(s.EventID) + len(s.Payload) }

func itoa(n int) string { return strconv.Itoa(n) }
