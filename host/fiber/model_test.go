package fiber_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/fiber"
	"github.com/jobhost/jobhost/host/op"
)

// TestModel does random things to a registry, and to a model of it that knows of
// no goroutines, and compares all that shows after every step.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		// What rapid throws must leave the bubble's goroutine to be caught.
		var thrown any
		synctest.Test(t, func(t *testing.T) {
			defer func() { thrown = recover() }()
			m := &model{T: rt, fixture: setup(t), fibers: map[string]*modelFiber{}, past: map[string]*modelFiber{}}
			rt.Repeat(map[string]func(*rapid.T){
				"start":        m.start,
				"start more":   m.start,
				"give up":      m.giveUp,
				"submit":       m.submit,
				"submit more":  m.submit,
				"pause":        m.pause,
				"resume":       m.resume,
				"interrupt":    m.interrupt,
				"receive":      m.receive,
				"receive more": m.receive,
				"emit":         m.emit,
				"finish":       m.finish,
				"time":         m.pass,
				"":             m.check,
			})
		})
		if thrown != nil {
			panic(thrown)
		}
	})
}

// modelFiber is what should be true of a fiber.
type modelFiber struct {
	spec     jobhost.FiberSpec
	control  chan string // to its body
	waits    bool        // for its permit
	starters []*call
	resting  time.Time // when it starts again; zero = it doesn't rest
	began    time.Time // the last run
	receives bool      // its body waits for input
	paused   bool
	told     time.Time // when it was interrupted
	queue    int
	senders  []*call
	received uint64
	emitted  uint64
	restarts int
	lately   []time.Time
	delay    time.Duration
	status   jobhost.FiberStatus // once it has ended
}

// call is a call that may wait, and what it should come to, once that is known.
type call struct {
	cancel context.CancelFunc
	got    chan error
	want   string // code; "canceled" for the caller's own end
	known  bool
}

func (c *call) expect(want string) { c.want, c.known = want, true }

type model struct {
	*rapid.T
	*fixture
	fibers  map[string]*modelFiber // not ended
	past    map[string]*modelFiber
	waiting []*modelFiber
	calls   []*call
	runs    int // on_terminate calls there should have been
}

const (
	modelPermits = 2 // as setup has them
	modelInput   = 3
)

var modelIDs = rapid.SampledFrom([]string{"a", "b", "c", "d"})

// call begins something in a goroutine.
func (m *model) call(do func(ctx context.Context) error) *call {
	ctx, cancel := context.WithCancel(context.Background())
	c := &call{cancel: cancel, got: make(chan error, 1)}
	m.calls = append(m.calls, c)
	go func() { c.got <- do(ctx) }()
	return c
}

func (m *model) start(t *rapid.T) {
	s := spec(modelIDs.Draw(t, "id"))
	s.Entry = rapid.SampledFrom([]string{"x", "x", "x", "y"}).Draw(t, "entry")
	s.Restart = jobhost.RestartPolicy{
		When: rapid.SampledFrom([]jobhost.RestartWhen{jobhost.RestartNever, jobhost.RestartOnFailure, jobhost.RestartAlways}).Draw(t, "restart"),
		Max:  jobhost.Duration(3 * time.Second), Intensity: 2, Within: jobhost.Duration(8 * time.Second),
	}.OrDefaults()
	f := m.fibers[s.ID]
	if f != nil && !f.told.IsZero() {
		t.Skip("it would wait for the end") // tested elsewhere
	}
	alike := f != nil && f.spec.Entry == s.Entry && f.spec.Restart == s.Restart
	control := make(chan string)
	c := m.call(func(ctx context.Context) error {
		_, err := m.Start(ctx, s, modelBody(control), m.onTerminate)
		return err
	})
	switch {
	case alike && f.waits:
		f.starters = append(f.starters, c)
	case alike:
		c.expect("")
	case f != nil:
		c.expect(string(jobhost.CodeConflict))
	default:
		f = &modelFiber{spec: s, control: control, starters: []*call{c}}
		m.fibers[s.ID] = f
		f.waits = true
		m.waiting = append(m.waiting, f)
		m.grant()
	}
}

func (m *model) used() (n int) {
	for _, f := range m.fibers {
		if !f.waits {
			n++
		}
	}
	return n
}

func (m *model) grant() {
	for len(m.waiting) > 0 && m.used() < modelPermits {
		f := m.waiting[0]
		m.waiting = m.waiting[1:]
		f.waits, f.began = false, time.Now()
		for _, c := range f.starters {
			c.expect("")
		}
	}
}

// modelBody follows the commands it receives.
func modelBody(control <-chan string) fiber.Body {
	return func(ctx context.Context, f *fiber.Fiber) ([]byte, *jobhost.Failure) {
		for {
			select {
			case <-ctx.Done():
				return nil, nil
			case what := <-control:
				switch what {
				case "receive":
					_, _ = op.Perform(ctx, f.Recv())
				case "emit":
					_ = f.Emit([]byte("x"))
				case "complete":
					return []byte("x"), nil
				case "fail":
					return fails(ctx, f)
				case "panic":
					panic("as it was told")
				}
			}
		}
	}
}

func (m *model) giveUp(t *rapid.T) {
	var open []*call
	for _, f := range m.waiting {
		for _, c := range f.starters {
			if !c.known {
				open = append(open, c)
			}
		}
	}
	for _, id := range sortedIDs(m.fibers) {
		open = append(open, m.fibers[id].senders...)
	}
	if len(open) == 0 {
		t.Skip("nobody waits")
	}
	c := rapid.SampledFrom(open).Draw(t, "call")
	c.cancel()
	c.expect("canceled")
	for _, id := range sortedIDs(m.fibers) {
		f := m.fibers[id]
		f.senders = slices.DeleteFunc(f.senders, func(s *call) bool { return s == c })
		if f.waits && !slices.ContainsFunc(f.starters, func(c *call) bool { return !c.known }) {
			// The fiber that was never there.
			m.dismiss(f, string(jobhost.CodeNotFound))
			delete(m.fibers, id)
			m.waiting = slices.DeleteFunc(m.waiting, func(w *modelFiber) bool { return w == f })
		}
	}
}

func sortedIDs(fibers map[string]*modelFiber) (ids []string) {
	for id := range fibers {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func (m *model) dismiss(f *modelFiber, code string) {
	for _, c := range f.senders {
		c.expect(code)
	}
	f.senders = nil
}

func (m *model) submit(t *rapid.T) {
	id, wait := modelIDs.Draw(t, "id"), rapid.Bool().Draw(t, "wait")
	c := m.call(func(ctx context.Context) error { return m.SendFiber(ctx, id, []byte("x"), wait) })
	f := m.fibers[id]
	switch {
	case f == nil:
		c.expect(string(jobhost.CodeNotFound))
	case f.paused:
		c.expect(string(jobhost.CodeConflict))
	case !f.told.IsZero():
		c.expect(string(jobhost.CodeNotFound))
	case f.queue < modelInput:
		c.expect("")
		f.take()
	case wait:
		f.senders = append(f.senders, c)
	default:
		c.expect(string(jobhost.CodeExhausted))
	}
}

// take takes a message in.
func (f *modelFiber) take() {
	f.received++
	if f.receives {
		f.receives = false
	} else {
		f.queue++
	}
}

// some returns one of the fibers that there are, or skips.
func (m *model) some(t *rapid.T, which func(*modelFiber) bool) *modelFiber {
	var ids []string
	for _, id := range sortedIDs(m.fibers) {
		if which(m.fibers[id]) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		t.Skip("there is none")
	}
	return m.fibers[rapid.SampledFrom(ids).Draw(t, "fiber")]
}

func anyFiber(*modelFiber) bool { return true }

// works are fibers whose body listens.
func works(f *modelFiber) bool { return !f.waits && f.resting.IsZero() && !f.receives }

func (m *model) pause(t *rapid.T) {
	f := m.some(t, anyFiber)
	if _, err := m.PauseFiber(context.Background(), f.spec.ID); err != nil {
		t.Fatal(err)
	}
	f.paused = true
	m.dismiss(f, string(jobhost.CodeConflict))
}

func (m *model) resume(t *rapid.T) {
	f := m.some(t, anyFiber)
	if _, err := m.ResumeFiber(context.Background(), f.spec.ID); err != nil {
		t.Fatal(err)
	}
	f.paused = false
}

func (m *model) interrupt(t *rapid.T) {
	f := m.some(t, anyFiber)
	if _, err := m.InterruptFiber(context.Background(), f.spec.ID); err != nil {
		t.Fatal(err)
	}
	if !f.told.IsZero() {
		return
	}
	f.told = time.Now()
	m.dismiss(f, string(jobhost.CodeNotFound))
	switch {
	case f.waits:
		for _, c := range f.starters {
			if !c.known {
				c.expect(string(jobhost.CodeConflict))
			}
		}
		m.waiting = slices.DeleteFunc(m.waiting, func(w *modelFiber) bool { return w == f })
		m.end(f, jobhost.FiberKilled)
	case !f.resting.IsZero():
		m.end(f, jobhost.FiberKilled)
	case f.receives:
		f.receives = false // it got the end of its input
	}
}

func (m *model) end(f *modelFiber, status jobhost.FiberStatus) {
	m.dismiss(f, string(jobhost.CodeNotFound))
	f.status, f.receives = status, false
	delete(m.fibers, f.spec.ID)
	m.past[f.spec.ID] = f
	m.runs++
	m.grant()
}

func (m *model) receive(t *rapid.T) {
	f := m.some(t, works)
	f.control <- "receive"
	switch {
	case f.queue > 0:
		f.queue--
		if len(f.senders) > 0 {
			f.senders[0].expect("")
			f.senders = f.senders[1:]
			f.take()
		}
	case f.told.IsZero():
		f.receives = true
	}
}

func (m *model) emit(t *rapid.T) {
	f := m.some(t, works)
	f.control <- "emit"
	f.emitted++
}

func (m *model) finish(t *rapid.T) {
	f := m.some(t, works)
	how := rapid.SampledFrom([]string{"complete", "fail", "panic"}).Draw(t, "how")
	f.control <- how
	synctest.Wait()
	status := jobhost.FiberFailed
	if how == "complete" {
		status = jobhost.FiberCompleted
	}
	policy, now := &f.spec.Restart, time.Now()
	switch {
	case !f.told.IsZero():
		m.end(f, jobhost.FiberKilled)
		return
	case policy.When == jobhost.RestartNever, policy.When == jobhost.RestartOnFailure && how == "complete":
		m.end(f, status)
		return
	}
	f.lately = slices.DeleteFunc(f.lately, func(at time.Time) bool { return now.Sub(at) >= time.Duration(policy.Within) })
	if len(f.lately) == policy.Intensity {
		m.end(f, jobhost.FiberFailed)
		return
	}
	f.lately = append(f.lately, now)
	if f.delay *= 2; f.delay == 0 || now.Sub(f.began) >= time.Duration(policy.Within) {
		f.delay = time.Duration(policy.Initial)
	}
	f.delay = min(f.delay, time.Duration(policy.Max))
	f.resting = now.Add(f.delay)
}

// pass lets a second pass.
func (m *model) pass(*rapid.T) {
	time.Sleep(time.Second)
	synctest.Wait()
	now := time.Now()
	for _, id := range sortedIDs(m.fibers) {
		switch f := m.fibers[id]; {
		case !f.told.IsZero() && now.Sub(f.told) >= grace:
			m.end(f, jobhost.FiberKilled)
		case !f.resting.IsZero() && !f.resting.After(now):
			f.resting, f.began = time.Time{}, now
			f.restarts++
		}
	}
}
