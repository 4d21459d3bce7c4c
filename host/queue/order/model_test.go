package order

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// TestModel does random things to an order and to a list of tasks, and compares
// all that can be asked after every step.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &orderModel{tasks: map[record.Key]*modelTask{}, running: map[record.Group]int{}, held: map[record.Group]bool{}}
		m.order = New(time.Minute, m.leftGroup)
		t.Repeat(map[string]func(*rapid.T){
			"push": m.push, "push more": m.push, "take": m.take, "take more": m.take, "leave": m.leave,
			"remove": m.remove, "advance": m.advance, "expire": m.expire, "aside": m.aside, "bring back": m.bringBack,
			"limit": m.limit, "hold": m.hold, "release": m.release, "": m.compare,
		})
	})
}

// modelTask is a task that waits.
type modelTask struct {
	Waiting
	aside bool
}

type orderModel struct {
	order   Order
	tasks   map[record.Key]*modelTask
	last    record.Key
	running map[record.Group]int
	held    map[record.Group]bool
	perKey  int
}

// leftGroup is called by the order when a group has lost its last task.
func (m *orderModel) leftGroup(id record.Group) { delete(m.held, id) }

// groups of a concurrency key are odd; the other one lets two of its tasks run.
var modelGroups = []record.Group{0, 0, 1, 3, 1<<16 | 2<<1}

func (m *orderModel) push(t *rapid.T) {
	m.last++
	w := Waiting{
		Entry{
			Key: m.last, Level: int8(rapid.IntRange(0, jobhost.Levels-1).Draw(t, "level")),
			ReadyAt: m.order.Now() + record.Millis(rapid.SampledFrom([]int{-200_000, -70_000, -1000, 0, 0, 500, 90_000}).Draw(t, "ready")),
			Tried:   rapid.Bool().Draw(t, "tried"),
		},
		Traits{Group: rapid.SampledFrom(modelGroups).Draw(t, "group")},
	}
	if rapid.IntRange(0, 3).Draw(t, "deadline") == 0 {
		w.Deadline = m.order.Now() + record.Millis(rapid.IntRange(1, 100_000).Draw(t, "until"))
	}
	if rapid.Bool().Draw(t, "put back") {
		m.order.PutBack(w.Entry, w.Traits)
	} else {
		m.order.Push(w.Entry, w.Traits)
	}
	m.tasks[w.Key] = &modelTask{Waiting: w}
}

// may reports whether a task may run now.
func (m *orderModel) may(w *modelTask) bool {
	return !w.aside && w.ReadyAt <= m.order.Now() && !m.full(w.Group)
}

func (m *orderModel) full(id record.Group) bool {
	limit := id.Limit(m.perKey)
	return m.held[id] || id != 0 && limit > 0 && m.running[id] >= limit
}

func (m *orderModel) effective(w *modelTask) jobhost.Priority {
	age := time.Duration(m.order.Now()-w.ReadyAt) * time.Millisecond
	return jobhost.PriorityAt(int(w.Level)).Effective(age, time.Minute)
}

func (m *orderModel) take(t *rapid.T) {
	var best *modelTask // of the tasks that may run
	grouped := false
	for _, key := range slices.Sorted(maps.Keys(m.tasks)) {
		w := m.tasks[key]
		grouped = grouped || w.Group != 0
		if !m.may(w) {
			continue
		}
		if best == nil || m.effective(w) < m.effective(best) || m.effective(w) == m.effective(best) && older(w.Entry, best.Entry) {
			best = w
		}
	}
	next, ok := m.order.Next()
	if ok != (best != nil) {
		t.Fatalf("there is a next task: %t, want %v", ok, best)
	}
	if !ok {
		return
	}
	w := m.order.Take(next)
	got := m.tasks[w.Key]
	switch {
	case got == nil || got.Waiting != w || next.Group != w.Group || !m.may(got):
		t.Fatalf("took %+v, which is %+v", w, got)
	case m.effective(got) != m.effective(best):
		t.Fatalf("took %+v with %v, want one with %v", w, m.effective(got), m.effective(best))
	case !grouped && len(m.running) == 0 && got != best:
		t.Fatalf("took %+v, want %+v", w, best)
	}
	for _, other := range m.tasks { // no task passes an older one of its own group and level
		if m.may(other) && other.Group == got.Group && other.Level == got.Level && older(other.Entry, got.Entry) {
			t.Fatalf("took %+v, though %+v is older", got, other)
		}
	}
	delete(m.tasks, w.Key)
	if next.Group != 0 {
		m.running[next.Group]++
	}
}

func (m *orderModel) leave(t *rapid.T) {
	if len(m.running) == 0 {
		return
	}
	id := rapid.SampledFrom(slices.Sorted(maps.Keys(m.running))).Draw(t, "group")
	if m.running[id]--; m.running[id] == 0 {
		delete(m.running, id)
	}
	m.order.Leave(id)
}

// draw chooses a task that waits; nil = there is none.
func (m *orderModel) draw(t *rapid.T) *modelTask {
	if len(m.tasks) == 0 {
		return nil
	}
	return m.tasks[rapid.SampledFrom(slices.Sorted(maps.Keys(m.tasks))).Draw(t, "task")]
}

func (m *orderModel) remove(t *rapid.T) {
	if w := m.draw(t); w != nil {
		m.order.Remove(w.Entry, w.Group)
		delete(m.tasks, w.Key)
	}
	if rapid.IntRange(0, 9).Draw(t, "sweep") == 0 {
		m.order.sweep()
	}
}

func (m *orderModel) advance(t *rapid.T) {
	m.order.Advance(m.order.Now() + record.Millis(rapid.IntRange(0, 70_000).Draw(t, "by")))
}

// expire takes out what has passed its deadline, and restores some.
func (m *orderModel) expire(t *rapid.T) {
	want := map[record.Key]bool{}
	for key, w := range m.tasks {
		if w.Deadline != 0 && w.Deadline <= m.order.Now() {
			want[key] = true
		}
	}
	var out []Waiting
	for {
		w, ok := m.order.Expire()
		if !ok {
			break
		}
		if !want[w.Key] || m.tasks[w.Key].Waiting != w {
			t.Fatalf("%+v has expired, want one of %v", w, want)
		}
		delete(want, w.Key)
		delete(m.tasks, w.Key)
		out = append(out, w)
	}
	if len(want) != 0 {
		t.Fatalf("%v have not expired", want)
	}
	for _, w := range out {
		if rapid.Bool().Draw(t, "restore") {
			w.Deadline = m.order.Now() + 1000
			m.order.Restore(w)
			m.tasks[w.Key] = &modelTask{Waiting: w}
		}
	}
}

// aside takes the next task and sets it aside.
func (m *orderModel) aside(t *rapid.T) {
	next, ok := m.order.Next()
	if !ok {
		return
	}
	w := m.order.Take(next)
	m.order.SetAside(w.Entry, w.Traits)
	if w.Group != 0 {
		m.order.Leave(w.Group)
	}
	m.tasks[w.Key].aside = true
	if got, ok := m.order.Aside(w.Key); !ok || got != w {
		t.Fatalf("%+v is aside, want %+v", got, w)
	}
}

func (m *orderModel) bringBack(t *rapid.T) {
	odd := rapid.Bool().Draw(t, "odd ones")
	may := func(key record.Key) bool { return (key%2 == 1) == odd }
	m.order.BringBack(may)
	for key, w := range m.tasks {
		w.aside = w.aside && !may(key)
	}
}

func (m *orderModel) limit(t *rapid.T) {
	m.perKey = rapid.IntRange(0, 3).Draw(t, "limit")
	m.order.LimitPerKey(m.perKey)
}

// hold holds a group of which a task runs, as lanes do.
func (m *orderModel) hold(t *rapid.T) {
	if len(m.running) == 0 {
		return
	}
	id := rapid.SampledFrom(slices.Sorted(maps.Keys(m.running))).Draw(t, "group")
	m.order.Hold(id)
	m.held[id] = true
}

func (m *orderModel) release(t *rapid.T) {
	id := rapid.SampledFrom(modelGroups).Draw(t, "group")
	m.order.Release(id)
	delete(m.held, id)
}

// compare compares what the order tells with the list.
func (m *orderModel) compare(t *rapid.T) {
	var want Count
	oldest := m.order.Now()
	views := map[jobhost.State][]record.Key{}
	for key, w := range m.tasks {
		late := w.ReadyAt > m.order.Now()
		switch {
		case !w.aside && late && w.Tried:
			want.Retrying[w.Level]++
			views[jobhost.Retrying] = append(views[jobhost.Retrying], key)
		case !w.aside && late:
			want.Scheduled[w.Level]++
			views[jobhost.Scheduled] = append(views[jobhost.Scheduled], key)
		case w.aside || m.full(w.Group):
			want.Held[w.Level]++
			views[jobhost.Held] = append(views[jobhost.Held], key)
		default:
			want.Ready[w.Level]++
			views[jobhost.Ready] = append(views[jobhost.Ready], key)
		}
		if !late {
			oldest = min(oldest, w.ReadyAt)
		}
	}
	if got := m.order.Count(false); got != want {
		t.Fatalf("the order counts %+v, want %+v", got, want)
	}
	if got := m.order.Len(); got != len(m.tasks) {
		t.Fatalf("%d tasks wait, want %d", got, len(m.tasks))
	}
	if got := m.order.Oldest(); got != oldest {
		t.Fatalf("the oldest is ready since %d, want %d", got, oldest)
	}
	for _, state := range []jobhost.State{jobhost.Ready, jobhost.Held, jobhost.Scheduled, jobhost.Retrying} {
		if got := m.viewed(state); !slices.Equal(got, slices.Sorted(slices.Values(views[state]))) {
			t.Fatalf("a view of %v has %v, want %v", state, got, views[state])
		}
	}
	for _, id := range modelGroups {
		if id != 0 && m.order.Full(id) != m.full(id) && m.known(id) {
			t.Fatalf("group %d is full: %t", id, m.order.Full(id))
		}
	}
	if size := m.order.Size(); size.Entries-size.Removed+m.asides() != len(m.tasks) {
		t.Fatalf("the order holds %+v of %d tasks", size, len(m.tasks))
	}
}

// viewed returns the keys that a view shows in a state.
func (m *orderModel) viewed(state jobhost.State) (keys []record.Key) {
	for _, view := range m.order.Views(state, false) {
		for e := range view {
			later := state == jobhost.Scheduled || state == jobhost.Retrying
			if !m.order.Gone(e) && (!later || e.Tried == (state == jobhost.Retrying)) {
				keys = append(keys, e.Key)
			}
		}
	}
	slices.Sort(keys)
	return keys
}

// known reports whether the order knows a group: one of its tasks runs, or is ready.
func (m *orderModel) known(id record.Group) bool {
	for _, w := range m.tasks {
		if w.Group == id && !w.aside && w.ReadyAt <= m.order.Now() {
			return true
		}
	}
	return m.running[id] > 0
}

func (m *orderModel) asides() (n int) {
	for _, w := range m.tasks {
		if w.aside {
			n++
		}
	}
	return n
}
