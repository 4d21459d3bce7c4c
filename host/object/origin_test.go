package object_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/object"
	"github.com/jobhost/jobhost/host/queue/queuetest"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/state/payload"
)

// restored returns a bench on a copy of the store of b, put in its place by a
// restore, with the jobs that are given. Both have the same payload store.
func (b *bench) restored(jobs map[string]payload.Ref) *bench {
	b.t.Helper()
	c := &bench{t: b.t, store: queuetest.NewMemory(), objects: b.objects}
	b.t.Cleanup(func() { _ = c.store.Close() })
	notes, err := b.store.Notes(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	for name, text := range notes {
		c.commit(&record.Note{Name: name, Text: text})
	}
	c.commit(&record.Note{Name: record.NoteRestored, Text: "1"})
	for id, ref := range jobs {
		c.end(id, ref)
	}
	return c
}

// end makes a job that refers to an object and has ended.
func (b *bench) end(id string, ref payload.Ref) {
	b.t.Helper()
	b.commit(&record.Settle{Key: b.submit(id, ref), Status: record.Succeeded, Attempt: 1})
}

// readable checks that the content of references can be had.
func (b *bench) readable(refs ...payload.Ref) {
	b.t.Helper()
	for _, ref := range refs {
		r, err := b.Open(b.t.Context(), ref)
		if err != nil {
			b.t.Errorf("%s: %v", ref.Key, err)
			continue
		}
		_ = r.Close()
	}
}

// A restored store reads what it refers to and removes none of it, neither with
// a job nor by a sweep, over restarts and further restores: the original may be
// alive. What it has made itself is removed with its job.
func TestRestoredLeavesTheOriginal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		before := b.put()
		b.end("before", before)
		c := b.restored(map[string]payload.Ref{"before": before})
		after := b.put() // of the original, which goes on
		b.end("after", after)
		for _, ref := range []payload.Ref{before, after} {
			b.Release(ref.String(), false)
		}

		c.Keeper = c.open()
		again := c.restored(map[string]payload.Ref{"before": before})
		for i, c := range []*bench{c, again} {
			c.Keeper = c.open()
			stop := c.run(c.Keeper)
			c.readable(before)
			own := c.put()
			c.end("own", own)
			c.Release(own.String(), false)
			c.commit(&record.Delete{ID: "before"})
			c.Gone()
			time.Sleep(62 * time.Hour)
			stop()
			b.readable(before, after)
			c.commit(&record.Delete{ID: "own"})
			stop = c.run(c.open()) // as after a restart
			time.Sleep(62 * time.Hour)
			stop()
			b.readable(before, after)
			b.want(2)
			if left, err := c.store.Gone(t.Context(), "", 10); len(left) != 0 || err != nil {
				t.Errorf("copy %d: left: %v, %v", i, left, err)
			}
		}
	})
}

// The uploads of the original are not the copy's.
func TestRestoredTakesNoTokens(t *testing.T) {
	t.Parallel()
	b := setup(t)
	token := b.upload().Ref
	c := b.restored(nil)
	if _, err := c.open().Redeem(t.Context(), token); jobhost.CodeOf(err) != jobhost.CodeInvalid {
		t.Errorf("got %v", err)
	}
}

// A store that takes over removes what it refers to and what no job refers to,
// be it at once or after it has run for a while.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	for _, ran := range []bool{false, true} {
		t.Run(fmt.Sprintf("after it ran %v", ran), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t)
				before, orphan, dropped := b.put(), b.put(), b.put()
				token := b.upload().Ref
				c := b.restored(map[string]payload.Ref{"before": before, "dropped": dropped})
				_ = orphan
				if ran {
					stop := c.run(c.open())
					c.commit(&record.Delete{ID: "dropped"})
					time.Sleep(62 * time.Hour)
					stop()
					b.want(4)
				}
				if n, err := object.TakeOver(t.Context(), c.store); err != nil || n != 1 {
					t.Fatalf("%d, %v", n, err)
				}
				c.Keeper = c.open()
				if !ran {
					if _, err := c.Redeem(t.Context(), token); err != nil {
						t.Errorf("an upload of before: %v", err)
					}
					c.commit(&record.Delete{ID: "dropped"})
				}
				stop := c.run(c.open())
				time.Sleep(62 * time.Hour)
				c.want(1)
				c.readable(before)
				c.commit(&record.Delete{ID: "before"})
				stop()
				stop = c.run(c.open())
				time.Sleep(62 * time.Hour)
				stop()
				c.want(0)
				if n, err := object.TakeOver(t.Context(), c.store); err != nil || n != 0 {
					t.Errorf("a second time: %d, %v", n, err)
				}
			})
		})
	}
}

// A store leaves nothing to an original any more when it has taken over, also one
// that had no payloads before it was restored.
func TestLeavesToOriginal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*bench{
		"with payloads": setup(t).restored(nil), "without": (&bench{t: t, store: queuetest.NewMemory()}).restored(nil),
	} {
		if is, err := object.LeavesToOriginal(t.Context(), c.store); !is || err != nil {
			t.Errorf("%s: %v, %v", name, is, err)
		}
		if _, err := object.TakeOver(t.Context(), c.store); err != nil {
			t.Fatal(err)
		}
		if is, err := object.LeavesToOriginal(t.Context(), c.store); is || err != nil {
			t.Errorf("%s, after it has taken over: %v, %v", name, is, err)
		}
	}
}
