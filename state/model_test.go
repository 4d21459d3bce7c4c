package state_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/statetest"
)

const modelTasks = 3

// model is what a board must do, written as simply as can be: it scans.
type model struct {
	ctx    context.Context
	clock  *clock
	store  *statetest.Memory
	board  *state.Board
	states []modelState // in the order in which they last changed
	seq    int          // of the last change
	subs   []*modelSub
	ended  []*modelSub
	cursor map[string]int // the number of the last change that each stands for
	life   int            // counts the boards
}

// modelEvent is what a subscription must get, after so many changes.
type modelEvent struct {
	text string
	seq  int
}

type modelState struct {
	state.State
	seq int
}

// modelSub is a subscription and what it must get.
type modelSub struct {
	sub    *state.Subscription
	task   *int
	tag    string
	want   []modelEvent
	life   int
	room   int // how many events can be unread
	unread int
	err    error
}

func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		m := &model{ctx: t.Context(), cursor: map[string]int{}, clock: &clock{now: time.Unix(1000, 0)}, store: statetest.NewMemory()}
		m.store.Now = m.clock.Now
		m.open(r)
		r.Repeat(map[string]func(*rapid.T){
			"":          m.check,
			"set":       m.set,
			"set more":  m.set,
			"flood":     m.flood,
			"subscribe": m.subscribe,
			"resume":    m.resume,
			"read":      m.read,
			"leave":     m.leave,
			"delete":    m.remove,
			"reopen":    m.reopen,
		})
		_ = m.board.Close()
	})
}

func (m *model) open(r *rapid.T) {
	b, err := state.NewBoard(m.ctx, m.store, job, modelTasks, state.Observer{})
	if err != nil {
		r.Fatal(err)
	}
	m.board = b
}

func drawTask(r *rapid.T) int   { return rapid.IntRange(0, modelTasks-1).Draw(r, "task") }
func drawTag(r *rapid.T) string { return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "tag") }

// drawScope draws one of the four ways to select.
func drawScope(r *rapid.T) (task *int, tag string) {
	if rapid.Bool().Draw(r, "one task") {
		task = new(drawTask(r))
	}
	if rapid.Bool().Draw(r, "one tag") {
		tag = drawTag(r)
	}
	return task, tag
}

func queryOf(task *int, tag string, opts ...state.Option) state.Query {
	if task != nil {
		opts = append(opts, state.WithTaskID(*task))
	}
	return state.NewQuery(append(opts, state.WithTag(tag))...)
}

// selected reports whether a state is in a scope.
func selected(s *state.State, task *int, tag string) bool {
	return (task == nil || *task == s.TaskID) && (tag == "" || tag == s.Tag)
}

// set writes a state, perhaps one that was written before.
func (m *model) set(r *rapid.T) {
	m.clock.set(rapid.IntRange(1000, 1005).Draw(r, "time"))
	s := of(drawTask(r), drawTag(r), rapid.Int32Range(-3, 3).Draw(r, "status"))
	if n := rapid.IntRange(0, 3).Draw(r, "event"); n > 0 {
		s.EventID = fmt.Sprint("event-id-", n)
	}
	m.write(r, s)
}

// flood writes so much that readers may be too slow.
func (m *model) flood(r *rapid.T) {
	s := of(drawTask(r), drawTag(r), 1)
	for range rapid.SampledFrom([]int{10, state.Buffer - 1, state.Buffer, state.Buffer + 1}).Draw(r, "writes") {
		m.write(r, s)
	}
}

func (m *model) write(r *rapid.T, s state.State) {
	got, err := m.board.Set(m.ctx, s)
	if err != nil {
		r.Fatal(err)
	}
	i := slices.IndexFunc(m.states, func(o modelState) bool { return o.TaskID == s.TaskID && o.Tag == s.Tag })
	var last state.State
	if i >= 0 {
		last = m.states[i].State
	}
	if s.EventID != "" && s.EventID == last.EventID {
		if got.Version != last.Version || got.Status != last.Status {
			r.Fatalf("sent again it is %+v, it was %+v", got, last)
		}
		return
	}
	if got.Version != last.Version+1 || got.Status != s.Status || !got.Timestamp.Equal(m.clock.now) {
		r.Fatalf("after %+v came %+v", last, got)
	}
	if i >= 0 {
		m.states = slices.Delete(m.states, i, i+1)
	}
	m.seq++
	m.states = append(m.states, modelState{got, m.seq})
	for _, sub := range slices.Clone(m.subs) {
		if !selected(&got, sub.task, sub.tag) {
			continue
		}
		if sub.unread == sub.room {
			m.end(sub, state.ErrSlow)
			continue
		}
		sub.unread++
		sub.want = append(sub.want, modelEvent{brief(&state.Event{State: got}), m.seq})
	}
}

// end notes that a subscription must have ended.
func (m *model) end(sub *modelSub, err error) {
	sub.err, sub.want = err, append(sub.want, modelEvent{text: "end"})
	m.subs = slices.DeleteFunc(m.subs, func(o *modelSub) bool { return o == sub })
	m.ended = append(m.ended, sub)
}

func (m *model) subscribe(r *rapid.T) {
	task, tag := drawScope(r)
	m.watch(r, task, tag, "", 0)
}

// resume subscribes after a cursor: of this board, or of one that is no more.
func (m *model) resume(r *rapid.T) {
	cursors := []string{"stale-1"}
	for c := range m.cursor {
		cursors = append(cursors, c)
	}
	slices.SortFunc(cursors, func(a, b string) int { return cmp.Or(cmp.Compare(m.cursor[a], m.cursor[b]), cmp.Compare(a, b)) })
	after := rapid.SampledFrom(cursors).Draw(r, "cursor")
	task, tag := drawScope(r)
	m.watch(r, task, tag, after, m.cursor[after])
}

func (m *model) watch(r *rapid.T, task *int, tag, after string, seq int) {
	sub, err := m.board.Subscribe(m.ctx, queryOf(task, tag, state.WithAfter(after)), nil)
	if err != nil {
		r.Fatal(err)
	}
	var replay []state.State
	for _, s := range m.states {
		if s.seq > seq && selected(&s.State, task, tag) {
			replay = append(replay, s.State)
		}
	}
	slices.SortFunc(replay, func(a, b state.State) int {
		return cmp.Or(a.Timestamp.Compare(b.Timestamp), cmp.Compare(a.Version, b.Version), cmp.Compare(a.TaskID, b.TaskID), cmp.Compare(a.Tag, b.Tag))
	})
	w := &modelSub{sub: sub, life: m.life, task: task, tag: tag, room: len(replay) + 1 + state.Buffer}
	for _, s := range replay {
		w.want = append(w.want, modelEvent{text: brief(&state.Event{State: s, Replay: true})})
	}
	w.want = append(w.want, modelEvent{"sentinel", m.seq})
	w.unread = len(w.want)
	m.subs = append(m.subs, w)
}

// read reads all that a subscription got.
func (m *model) read(r *rapid.T) {
	if len(m.subs) == 0 {
		return
	}
	sub := rapid.SampledFrom(m.subs).Draw(r, "subscription")
	m.compare(r, sub)
	sub.unread = 0
}

// compare reads what can be read, and notes what cursors stand for.
func (m *model) compare(r *rapid.T, sub *modelSub) {
	for len(sub.want) > 0 {
		want := sub.want[0]
		sub.want = sub.want[1:]
		select {
		case e, open := <-sub.sub.Events():
			switch {
			case !open:
				if want.text != "end" {
					r.Fatalf("it has ended, want %s", want.text)
				}
			case brief(e) != want.text:
				r.Fatalf("told %s, want %s", brief(e), want.text)
			case e.Cursor != "" && sub.life == m.life:
				m.cursor[e.Cursor] = want.seq
			}
		default:
			r.Fatalf("nothing is told, want %s", want.text)
		}
	}
	if rest, _ := told(sub.sub); len(rest) > 0 && sub.err == nil {
		r.Fatalf("told besides: %q", rest)
	}
	if !errors.Is(sub.sub.Err(), sub.err) {
		r.Fatalf("ended with %v, want %v", sub.sub.Err(), sub.err)
	}
}

// leave closes a subscription.
func (m *model) leave(r *rapid.T) {
	if len(m.subs) == 0 {
		return
	}
	sub := rapid.SampledFrom(m.subs).Draw(r, "subscription")
	sub.sub.Close()
	m.end(sub, state.ErrClosed)
}

// remove deletes the job, perhaps marks it before, and opens it anew.
func (m *model) remove(r *rapid.T) {
	if rapid.Bool().Draw(r, "mark") {
		if err := m.store.Mark(m.ctx, job); err != nil {
			r.Fatal(err)
		}
	}
	if err := m.store.Delete(m.ctx, job); err != nil {
		r.Fatal(err)
	}
	m.states = nil
	m.begin(r, state.ErrDeleted)
}

// reopen closes the board and opens another.
func (m *model) reopen(r *rapid.T) {
	if err := m.board.Close(); err != nil {
		r.Fatal(err)
	}
	m.begin(r, state.ErrClosed)
}

// begin ends what there is for a reason, and opens another board.
func (m *model) begin(r *rapid.T, reason error) {
	for _, sub := range slices.Clone(m.subs) {
		m.end(sub, reason)
	}
	m.life++
	for c := range m.cursor {
		m.cursor[c] = 0 // of another life: as good as none
	}
	m.open(r)
}

// check compares everything that can be asked, and what ended subscriptions got.
func (m *model) check(r *rapid.T) {
	for _, sub := range m.ended {
		m.compare(r, sub)
	}
	m.ended = nil
	for task := -1; task < modelTasks; task++ {
		for _, tag := range []string{"", "a", "b", "c", "never"} {
			var one *int
			if task >= 0 {
				one = &task
			}
			m.checkScope(r, one, tag)
		}
	}
}

func (m *model) checkScope(r *rapid.T, task *int, tag string) {
	q := queryOf(task, tag)
	got, err := m.board.Get(q)
	if want := m.lowest(task, tag); err != nil || brief(&state.Event{State: got}) != brief(&state.Event{State: want}) {
		r.Fatalf("get: %s, %v; want %s", brief(&state.Event{State: got}), err, brief(&state.Event{State: want}))
	}
	list, err := m.board.List(q)
	n := 0
	for i := range m.states {
		if selected(&m.states[i].State, task, tag) {
			n++
		}
	}
	if err != nil || len(list) != n || !slices.IsSortedFunc(list, func(a, b state.State) int {
		return cmp.Or(cmp.Compare(a.TaskID, b.TaskID), cmp.Compare(a.Tag, b.Tag))
	}) {
		r.Fatalf("list: %+v, %v; want %d", list, err, n)
	}
}

// lowest finds what prevails by looking at all there is, and at what is missing.
func (m *model) lowest(task *int, tag string) state.State {
	var all []state.State
	for i := range m.states {
		if s := m.states[i].State; selected(&s, task, tag) {
			all = append(all, s)
		}
	}
	for t := range modelTasks {
		missing := !slices.ContainsFunc(all, func(s state.State) bool { return s.TaskID == t })
		if missing && (task == nil || *task == t) {
			all = append(all, of(t, tag, 0))
		}
	}
	return slices.MinFunc(all, func(a, b state.State) int {
		return cmp.Or(cmp.Compare(a.Status, b.Status), cmp.Compare(a.TaskID, b.TaskID), cmp.Compare(a.Tag, b.Tag))
	})
}
