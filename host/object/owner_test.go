package object_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost/host/queue"
)

// twin returns a bench on a copy of the store's files, as cp makes one: another
// place, and nothing that says so.
func (b *bench) twin(place string) *bench {
	b.t.Helper()
	c := b.restored(nil)
	c.commit(&queue.Note{Name: queue.NoteRestored})
	c.place = place
	return c
}

// setupAt is setup for a store that can be copied.
func setupAt(t *testing.T, place string) *bench {
	t.Helper()
	b := setup(t)
	b.place = place
	b.Keeper = b.open()
	return b
}

// lived lets a host begin, and end: by a stop, or by a crash.
func (b *bench) lived(crash bool) {
	stop := b.run(b.Keeper)
	synctest.Wait()
	if crash {
		b.objects.Fail(errors.New("away")) // it says nothing any more
	}
	stop()
	b.objects.Fail(nil)
}

// Of two living hosts with one origin the second removes nothing, says so, and
// goes on by itself when the first is gone.
func TestTwoHostsWithOneOrigin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setupAt(t, "one")
		stopFirst := b.run(b.Keeper)
		synctest.Wait() // it owns them before the other one looks
		ref := b.put()
		b.end("job", ref)
		b.Release(ref.String(), false)
		c := b.twin("two")
		c.end("job", ref)
		c.Keeper = c.open()
		stop := c.run(c.Keeper)
		c.commit(&queue.Delete{ID: "job"})
		c.Gone()
		time.Sleep(62 * time.Hour)
		b.want(1)
		b.readable(ref)
		if !c.contested.Load() || b.contested.Load() {
			t.Errorf("contested: the first %v, the second %v", b.contested.Load(), c.contested.Load())
		}
		// The first removes what is its own.
		other := b.put()
		b.end("other", other)
		b.Release(other.String(), false)
		b.commit(&queue.Delete{ID: "other"})
		b.Gone()
		synctest.Wait()
		b.want(1)
		stopFirst()
		time.Sleep(10 * time.Minute)
		b.want(0)
		if c.contested.Load() {
			t.Error("the first is gone, and still contests")
		}
		// The roles are changed now.
		defer b.run(b.open())()
		time.Sleep(10 * time.Minute)
		if !b.contested.Load() || c.contested.Load() {
			t.Errorf("contested: the first %v, the second %v", b.contested.Load(), c.contested.Load())
		}
		stop()
	})
}

// A host that is started again on its store after a crash waits for nothing.
func TestOwnerStartsAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setupAt(t, "one")
		b.lived(true)
		ref := b.put()
		b.end("job", ref)
		b.commit(&queue.Delete{ID: "job"})
		defer b.run(b.open())()
		synctest.Wait()
		b.want(0)
	})
}

// A store that was moved to another machine goes on at once, or within minutes if
// its host has crashed.
func TestOwnerMoves(t *testing.T) {
	t.Parallel()
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprintf("crash %v", crash), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setupAt(t, "one")
				b.lived(crash)
				ref := b.put()
				b.end("job", ref)
				b.commit(&queue.Delete{ID: "job"})
				b.place = "two"
				defer b.run(b.open())()
				if crash {
					time.Sleep(90 * time.Second)
					b.want(1)
					time.Sleep(3 * time.Minute)
				}
				synctest.Wait()
				b.want(0)
				if b.contested.Load() {
					t.Error("there is a contest")
				}
			})
		})
	}
}

// Who can't tell whether he is the owner removes nothing.
func TestOwnerUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setupAt(t, "one")
		ref := b.put()
		b.end("job", ref)
		b.commit(&queue.Delete{ID: "job"})
		b.objects.Fail(errors.New("away"))
		defer b.run(b.open())()
		time.Sleep(time.Hour)
		b.want(1)
		b.objects.Fail(nil)
		time.Sleep(2 * time.Minute)
		b.want(0)
	})
}

// Two copies of a store that start when the mark of a third one has stood still
// don't both take it over.
func TestTwoHostsTakeOverOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setupAt(t, "one")
		b.lived(true)
		twins := []*bench{b.twin("two"), b.twin("three")}
		var stops []func()
		for _, c := range twins {
			c.Keeper = c.open()
			stops = append(stops, c.run(c.Keeper))
		}
		defer func() {
			for _, stop := range stops {
				stop()
			}
		}()
		time.Sleep(10 * time.Minute)
		var removed int64
		for i, c := range twins {
			ref := c.put()
			c.end("job", ref)
			c.Release(ref.String(), false)
			c.commit(&queue.Delete{ID: "job"})
			c.Gone()
			time.Sleep(10 * time.Minute)
			n := c.removed[0].Load()
			if contested := c.contested.Load(); contested == (n == 1) {
				t.Errorf("twin %d has removed %d, and is contested: %v", i, n, contested)
			}
			removed += n
		}
		if removed != 1 {
			t.Errorf("%d of two were removed", removed)
		}
	})
}
