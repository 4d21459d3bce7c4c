package op_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost/host/op"
)

// performer is one performing, and what a model says of it.
type performer[T comparable] struct {
	cancel context.CancelFunc
	out    <-chan result[T]
	ended  bool
	want   *result[T] // nil = it must wait
}

// crowd is all performings of one primitive.
type crowd[T comparable] []*performer[T]

func (c *crowd[T]) perform(o op.Op[T]) *performer[T] {
	ctx, cancel := context.WithCancel(context.Background())
	p := &performer[T]{cancel: cancel, out: background(ctx, o)}
	synctest.Wait() // so that they come in order
	*c = append(*c, p)
	return p
}

func (p *performer[T]) gets(v T, err error) { p.want = &result[T]{v, err} }

// waiting are those that the model has wait, in the order in which they came.
func (c *crowd[T]) waiting() (list []*performer[T]) {
	for _, p := range *c {
		if p.want == nil {
			list = append(list, p)
		}
	}
	return list
}

// giveUp cancels one of those that wait.
func (c *crowd[T]) giveUp(rt *rapid.T) {
	list := c.waiting()
	if len(list) == 0 {
		rt.Skip("none waits")
	}
	p := rapid.SampledFrom(list).Draw(rt, "performer")
	p.cancel()
	var zero T
	p.gets(zero, context.Canceled)
}

// check compares all performings with the model.
func (c *crowd[T]) check(rt *rapid.T) {
	synctest.Wait()
	for i, p := range *c {
		select {
		case got := <-p.out:
			p.ended = true
			if p.want == nil || got.value != p.want.value || !errors.Is(got.err, p.want.err) {
				rt.Fatalf("performing %d got %+v, want %+v", i, got, p.want)
			}
		default:
			if p.want != nil && !p.ended {
				rt.Fatalf("performing %d waits, want %+v", i, *p.want)
			}
		}
	}
}

func (c *crowd[T]) end() {
	for _, p := range *c {
		p.cancel()
	}
	synctest.Wait()
}

// compare runs random actions in a bubble, in which a test can't be asked for its
// deadline.
func compare(t *testing.T, property func(rt *rapid.T)) {
	t.Helper()
	bubble(t, func(t *testing.T) { rapid.Check(struct{ rapid.TB }{t}, property) })
}

func TestSemaphoreModel(t *testing.T) {
	compare(t, func(rt *rapid.T) {
		size := rapid.IntRange(1, 3).Draw(rt, "permits")
		s, free, c := op.NewSemaphore(size), size, crowd[struct{}]{}
		defer c.end()
		rt.Repeat(map[string]func(*rapid.T){
			"acquire": func(*rapid.T) {
				if p := c.perform(s.Acquire()); free > 0 {
					free--
					p.gets(struct{}{}, nil)
				}
			},
			"release": func(rt *rapid.T) {
				if free == size {
					rt.Skip("none is taken")
				}
				s.Release()
				if list := c.waiting(); len(list) > 0 {
					list[0].gets(struct{}{}, nil)
				} else {
					free++
				}
			},
			"give up": c.giveUp,
			"": func(rt *rapid.T) {
				c.check(rt)
				if s.Free() != free {
					rt.Fatalf("%d free, want %d", s.Free(), free)
				}
			},
		})
	})
}

func TestWaitGroupModel(t *testing.T) {
	compare(t, func(rt *rapid.T) {
		var g op.WaitGroup
		n, c := 0, crowd[struct{}]{}
		defer c.end()
		rt.Repeat(map[string]func(*rapid.T){
			"wait": func(*rapid.T) {
				if p := c.perform(g.Wait()); n == 0 {
					p.gets(struct{}{}, nil)
				}
			},
			"add": func(rt *rapid.T) {
				delta := rapid.IntRange(-n, 2).Draw(rt, "delta")
				g.Add(delta)
				if n += delta; n == 0 {
					for _, p := range c.waiting() {
						p.gets(struct{}{}, nil)
					}
				}
			},
			"give up": c.giveUp,
			"": func(rt *rapid.T) {
				c.check(rt)
				if g.Count() != n {
					rt.Fatalf("count %d, want %d", g.Count(), n)
				}
			},
		})
	})
}

func TestPulseModel(t *testing.T) {
	compare(t, func(rt *rapid.T) {
		var p op.Pulse
		beats, closed, c := uint64(0), false, crowd[uint64]{}
		defer c.end()
		rt.Repeat(map[string]func(*rapid.T){
			"changed": func(rt *rapid.T) {
				seen := rapid.SampledFrom([]uint64{0, beats}).Draw(rt, "seen")
				switch one := c.perform(p.Changed(seen)); {
				case seen != beats:
					one.gets(beats, nil)
				case closed:
					one.gets(beats, op.ErrClosed)
				}
			},
			"beat": func(rt *rapid.T) {
				if !closed {
					beats++
				}
				if got := p.Beat(); got != beats {
					rt.Fatalf("beat %d, want %d", got, beats)
				}
				for _, one := range c.waiting() {
					one.gets(beats, nil)
				}
			},
			"close": func(rt *rapid.T) {
				if rapid.IntRange(0, 9).Draw(rt, "really") > 0 {
					rt.Skip("not yet")
				}
				if p.Close() == closed {
					rt.Fatal("close must report whether that is new")
				}
				closed = true
				for _, one := range c.waiting() {
					one.gets(beats, op.ErrClosed)
				}
			},
			"give up": c.giveUp,
			"":        c.check,
		})
	})
}

// mailModel is a mailbox told in the simplest way.
type mailModel struct {
	box       *op.Mailbox[int]
	size      int
	full      op.Policy
	next      int
	queue     []int
	lost      uint64
	closed    bool
	senders   crowd[struct{}]
	offered   map[*performer[struct{}]]int
	receivers crowd[int]
}

func (m *mailModel) send(*rapid.T) {
	m.next++
	v := m.next
	waiting := m.receivers.waiting()
	p := m.senders.perform(m.box.Send(v))
	switch {
	case m.closed:
		p.gets(struct{}{}, op.ErrClosed)
	case len(waiting) > 0:
		waiting[0].gets(v, nil)
		p.gets(struct{}{}, nil)
	case len(m.queue) < m.size:
		m.queue = append(m.queue, v)
		p.gets(struct{}{}, nil)
	case m.full == op.Reject:
		p.gets(struct{}{}, op.ErrFull)
	case m.full == op.DropOldest:
		m.queue = append(m.queue[1:], v)
		m.lost++
		p.gets(struct{}{}, nil)
	default:
		m.offered[p] = v
	}
}

func (m *mailModel) receive(*rapid.T) {
	p := m.receivers.perform(m.box.Recv())
	switch {
	case len(m.queue) > 0:
		p.gets(m.queue[0], nil)
		m.queue = slices.Clone(m.queue[1:])
		if list := m.senders.waiting(); len(list) > 0 {
			m.queue = append(m.queue, m.offered[list[0]])
			list[0].gets(struct{}{}, nil)
		}
	case m.closed:
		p.gets(0, op.ErrClosed)
	}
}

func (m *mailModel) close(rt *rapid.T) {
	if rapid.IntRange(0, 19).Draw(rt, "really") > 0 {
		rt.Skip("not yet")
	}
	if m.box.Close() == m.closed {
		rt.Fatal("close must report whether it was open")
	}
	m.closed = true
	for _, p := range m.senders.waiting() {
		p.gets(struct{}{}, op.ErrClosed)
	}
	for _, p := range m.receivers.waiting() {
		p.gets(0, op.ErrClosed)
	}
}

func (m *mailModel) check(rt *rapid.T) {
	m.senders.check(rt)
	m.receivers.check(rt)
	if m.box.Len() != len(m.queue) || m.box.Lost() != m.lost {
		rt.Fatalf("%d queued and %d lost, want %d and %d", m.box.Len(), m.box.Lost(), len(m.queue), m.lost)
	}
}

func TestMailboxModel(t *testing.T) {
	compare(t, func(rt *rapid.T) {
		m := &mailModel{
			size:    rapid.IntRange(1, 3).Draw(rt, "size"),
			full:    rapid.SampledFrom([]op.Policy{op.Block, op.Reject, op.DropOldest}).Draw(rt, "full"),
			offered: map[*performer[struct{}]]int{},
		}
		m.box = op.NewMailbox[int](m.size, m.full)
		defer func() { m.senders.end(); m.receivers.end() }()
		rt.Repeat(map[string]func(*rapid.T){
			"send": m.send, "receive": m.receive, "close": m.close,
			"give up sending": m.senders.giveUp, "give up receiving": m.receivers.giveUp,
			"": m.check,
		})
	})
}
