package state

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/jobhost/jobhost"
)

// Manager is what one task of a job works with: it sets the states of that task,
// and sees those of all. A manager of [Monitor] only sees. It is safe for many
// goroutines.
type Manager struct {
	board *Board
	task  int
	owns  bool // it opened the board; otherwise its opener closes it

	mu     sync.Mutex    // held while it is closed, and where that must not happen
	closed chan struct{} // closed by Close
}

// NewManager returns the manager of a task on a board, which others may use too:
// closing the manager leaves it open. The task is an index from 0, or [Monitor].
func NewManager(b *Board, task int) (*Manager, error) {
	if task != Monitor {
		if err := checkTask(task, b.tasks); err != nil {
			return nil, err
		}
	}
	return &Manager{board: b, task: task, closed: make(chan struct{})}, nil
}

// Open returns the manager of a task on a board of its own, which it closes: see
// [Store.Open] for the number of tasks. The store stays open.
func Open(ctx context.Context, store Store, job Job, task, tasks int, observe Observer) (*Manager, error) {
	b, err := NewBoard(ctx, store, job, tasks, observe)
	if err != nil {
		return nil, err
	}
	m, err := NewManager(b, task)
	if err != nil {
		_ = b.Close()
		return nil, err
	}
	m.owns = true
	return m, nil
}

// TaskID returns the index of the manager's task, or [Monitor].
func (m *Manager) TaskID() int { return m.task }

// Tasks returns the job's number of tasks.
func (m *Manager) Tasks() int { return m.board.tasks }

// SetState makes a state of the manager's task durable. Version and Timestamp are
// the store's. Errors: [ErrTaskMismatch], [ErrJobMismatch], [ErrReadOnly],
// [ErrClosed], and those of [Board.Set].
func (m *Manager) SetState(ctx context.Context, s State) error {
	switch {
	case m.isClosed():
		return ErrClosed
	case m.task == Monitor:
		return ErrReadOnly
	case s.TaskID != m.task:
		return ErrTaskMismatch
	case s.JobID != "" && s.JobID != m.board.job.ID:
		return ErrJobMismatch
	}
	_, err := m.board.Set(ctx, s)
	return err
}

// The beginnings and texts of messages by which people know a status.
const (
	markStarted  = "🟢 "
	markFinished = "⚫ "
	markError    = "🔴 "
	markWarning  = "🟡 "
)

// SetStarted sets [StatusStarted], with the message "🟢 Started" unless there is one.
func (m *Manager) SetStarted(ctx context.Context, s State) error {
	return m.SetState(ctx, Started(s))
}

// SetFinished sets [StatusFinished], with the message "⚫ Finished" unless there is one.
func (m *Manager) SetFinished(ctx context.Context, s State) error {
	return m.SetState(ctx, Finished(s))
}

// SetError sets [StatusError], with the error after "🔴 " as message.
func (m *Manager) SetError(ctx context.Context, err error, s State) error {
	return m.SetState(ctx, Failed(err, s))
}

// SetWarning sets [StatusWarning], with the warning after "🟡 " as message.
func (m *Manager) SetWarning(ctx context.Context, warning string, s State) error {
	return m.SetState(ctx, Warned(warning, s))
}

// Started returns s as started.
func Started(s State) State {
	s.Status = StatusStarted
	if s.Message == "" {
		s.Message = markStarted + "Started"
	}
	return s
}

// Finished returns s as finished.
func Finished(s State) State {
	s.Status = StatusFinished
	if s.Message == "" {
		s.Message = markFinished + "Finished"
	}
	return s
}

// Failed returns s with an error.
func Failed(err error, s State) State {
	s.Status, s.Message = StatusError, message(markError, fmt.Sprint(err))
	return s
}

// Warned returns s with a warning.
func Warned(warning string, s State) State {
	s.Status, s.Message = StatusWarning, message(markWarning, warning)
	return s
}

// message makes any text a message.
func message(mark, text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	const most = jobhost.MaxStateMessageBytes
	if len(mark)+len(text) <= most {
		return mark + text
	}
	const cut = "…"
	return mark + strings.ToValidUTF8(text[:most-len(mark)-len(cut)], "") + cut
}

// GetState returns a state, from memory:
//
//   - with a task and a tag, that very state;
//   - with a tag, the lowest of all tasks under it;
//   - with a task, the lowest of all its tags;
//   - with neither, the lowest of the job.
//
// What was never reported is a state that is not started, and no error.
func (m *Manager) GetState(_ context.Context, opts ...Option) (State, error) {
	if m.isClosed() {
		return State{}, ErrClosed
	}
	return m.board.Get(NewQuery(opts...))
}

// Subscribe is [Board.Subscribe]; the subscription ends with the manager too.
func (m *Manager) Subscribe(ctx context.Context, opts ...Option) (*Subscription, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.isClosed() {
		return nil, ErrClosed
	}
	return m.board.subscribe(ctx, NewQuery(opts...), m, nil)
}

// Synchronize is [Board.Synchronize]; closing the manager ends it too.
func (m *Manager) Synchronize(ctx context.Context, tag string, target int32) ([]State, error) {
	if m.isClosed() {
		return nil, ErrClosed
	}
	return m.board.synchronize(ctx, tag, target, m.closed)
}

// MarkJobDeleted marks the job as deleted, and DeleteJob removes it: see [Store].
// That is for task 0; the managers of others do nothing.
func (m *Manager) MarkJobDeleted(ctx context.Context) error {
	return m.ofJob(func() error { return m.board.store.Mark(ctx, m.board.job) })
}

// DeleteJob removes the job with its states: see [Manager.MarkJobDeleted].
func (m *Manager) DeleteJob(ctx context.Context) error {
	return m.ofJob(func() error { return m.board.store.Delete(ctx, m.board.job) })
}

// ofJob does what only task 0 does for the whole job.
func (m *Manager) ofJob(do func() error) error {
	switch {
	case m.isClosed():
		return ErrClosed
	case m.task != 0:
		return nil
	}
	return do()
}

// Close ends what waits with the manager, and closes its board if it opened it.
// Closing twice is fine.
func (m *Manager) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.isClosed() {
		return nil
	}
	close(m.closed)
	m.board.endOf(m)
	if !m.owns {
		return nil
	}
	return m.board.Close()
}

func (m *Manager) isClosed() bool {
	select {
	case <-m.closed:
		return true
	default:
		return false
	}
}

// endOf ends the subscriptions of an owner.
func (b *Board) endOf(owner any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.subs {
		if s.owner == owner {
			s.leaveLocked(ErrClosed)
		}
	}
}
