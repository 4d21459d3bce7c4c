package hub_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/jobhost/jobhost/host/hub"
	"github.com/jobhost/jobhost/host/op"
	"pgregory.net/rapid"
)

// reader is what a subscription should do, told in the simplest way.
type reader struct {
	sub    *hub.Subscription[int]
	key    string
	gap    bool
	past   []int // a piece of what it asked for: values, which are the numbers too
	later  []int // the rest of it
	unread []int // what has come since
	reason error
}

// TestModel compares a hub with a list of everything that was ever published.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := hub.Options{Replay: rapid.IntRange(0, 6).Draw(t, "replay"), Buffer: rapid.IntRange(1, 9).Draw(t, "buffer")}
		m := &model{hub: hub.New[int](o), options: o}
		t.Repeat(map[string]func(*rapid.T){
			"publish":   m.publish,
			"subscribe": m.subscribe,
			"read":      m.read,
			"close":     m.close,
			"":          m.check,
		})
	})
}

type model struct {
	hub     *hub.Hub[int]
	options hub.Options
	keys    [][]string // of all items; those of the item with number n are keys[n-1]
	readers []*reader
}

var keys = rapid.SampledFrom([]string{"", "a", "b"})

func (m *model) publish(t *rapid.T) {
	has := rapid.SliceOfN(keys, 1, 3).Draw(t, "keys")
	m.keys = append(m.keys, has)
	n := len(m.keys)
	if seq := m.hub.Publish(has[0], n, has[1:]...); seq != uint64(n) {
		t.Fatalf("number %d, want %d", seq, n)
	}
	for _, r := range m.readers {
		if r.reason != nil || r.key != "" && !slices.Contains(has, r.key) {
			continue
		}
		if len(r.unread) == m.options.Buffer {
			r.reason = hub.ErrSlow
			continue
		}
		r.unread = append(r.unread, n)
	}
}

func (m *model) subscribe(t *rapid.T) {
	q := hub.Query{Key: keys.Draw(t, "key"), Replay: rapid.Bool().Draw(t, "replay"), After: rapid.Uint64Range(0, uint64(len(m.keys)+2)).Draw(t, "after")}
	r := &reader{sub: m.hub.Subscribe(q), key: q.Key}
	if q.Replay {
		last, forgotten := len(m.keys), max(len(m.keys)-m.options.Replay, 0)
		after := int(q.After)
		if after > last {
			r.gap, after = true, 0
		}
		r.gap = r.gap || after < forgotten
		for n := max(after, forgotten) + 1; n <= last; n++ {
			if q.Key == "" || slices.Contains(m.keys[n-1], q.Key) {
				r.later = append(r.later, n)
			}
		}
		r.fetch(m)
	}
	m.readers = append(m.readers, r)
}

// fetch takes the next piece of the past, unless it is forgotten.
func (r *reader) fetch(m *model) {
	if len(r.past) > 0 || len(r.later) == 0 {
		return
	}
	if r.later[0] <= len(m.keys)-m.options.Replay {
		r.later, r.unread, r.reason = nil, nil, hub.ErrSlow
		return
	}
	n := min(len(r.later), max(m.options.Buffer/4, 1))
	r.past, r.later = r.later[:n], r.later[n:]
}

func (m *model) read(t *rapid.T) {
	if len(m.readers) == 0 {
		t.Skip("nobody reads")
	}
	r := m.readers[rapid.IntRange(0, len(m.readers)-1).Draw(t, "reader")]
	var item hub.Item[int]
	var ok bool
	var err error
	if rapid.Bool().Draw(t, "as op") {
		item, ok, err = op.TryPerform(r.sub.NextOp())
		ok = ok && err == nil
	} else {
		item, ok, err = r.sub.TryNext()
	}
	r.fetch(m)
	switch {
	case r.gap:
		if r.gap = false; !errors.Is(err, hub.ErrGap) {
			t.Fatalf("error %v, want ErrGap", err)
		}
	case len(r.past)+len(r.unread) > 0:
		from := &r.past
		if len(r.past) == 0 {
			from = &r.unread
		}
		if !ok || err != nil || item.Value != (*from)[0] {
			t.Fatalf("got %+v %v %v, want %d", item, ok, err, (*from)[0])
		}
		*from = (*from)[1:]
	default:
		if ok || !errors.Is(err, r.reason) {
			t.Fatalf("got %+v %v %v, want %v", item, ok, err, r.reason)
		}
	}
}

func (m *model) close(t *rapid.T) {
	if len(m.readers) == 0 {
		t.Skip("nobody reads")
	}
	i := rapid.IntRange(0, len(m.readers)-1).Draw(t, "reader")
	m.readers[i].sub.Close()
	m.readers = append(m.readers[:i:i], m.readers[i+1:]...)
}

func (m *model) check(t *rapid.T) {
	open := 0
	for _, r := range m.readers {
		if r.reason == nil {
			open++
		}
		if !errors.Is(r.sub.Err(), r.reason) {
			t.Fatalf("Err %v, want %v", r.sub.Err(), r.reason)
		}
	}
	if st := m.hub.Stats(); st.Subscriptions != open || st.Published != uint64(len(m.keys)) {
		t.Fatalf("stats %+v, want %d open and %d published", st, open, len(m.keys))
	}
}
