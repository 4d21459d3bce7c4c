package object_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/state/payload/payloadtest"
)

// twin returns a bench on a copy of the store's files, as cp makes one: another
// place, and nothing that says so.
func (b *bench) twin(place string) *bench {
	b.t.Helper()
	c := b.restored(nil)
	c.commit(&record.Note{Name: record.NoteRestored})
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

// slowMarks is a store that takes a while to read a mark, and to set one.
type slowMarks struct {
	*payloadtest.Memory
	takes time.Duration
}

func (s *slowMarks) Mark(ctx context.Context, name string) ([]byte, error) {
	text, err := s.Memory.Mark(ctx, name)
	time.Sleep(s.takes)
	return text, err
}

func (s *slowMarks) SetMark(ctx context.Context, name string, text []byte) error {
	time.Sleep(s.takes)
	err := s.Memory.SetMark(ctx, name, text)
	time.Sleep(s.takes)
	return err
}

// Two copies of a store that start at the same moment find no mark, and only one of
// them ever removes objects, however long each waits for the store's answers.
func TestTwoHostsStartAtOnce(t *testing.T) {
	t.Parallel()
	for takes, removed := range map[time.Duration]bool{
		time.Millisecond: true, 2 * time.Second: true,
		10 * time.Second: false, // neither can tell whose mark will be the last
		25 * time.Second: true, 40 * time.Second: true,
	} {
		t.Run(takes.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setupAt(t, "one")
				hosts := []*bench{b, b.twin("two")}
				hosts[0].markTakes, hosts[1].markTakes = time.Millisecond, takes
				for _, h := range hosts {
					h.Keeper = h.open()
				}
				defer b.run(b.Keeper)()
				defer hosts[1].run(hosts[1].Keeper)()
				var last, changes int
				for n := range 600 { // a job of each ends every second
					for i, h := range hosts {
						before := h.removed[0].Load()
						id, ref := fmt.Sprint("job", n), h.put()
						h.end(id, ref)
						h.Release(ref.String(), false)
						h.commit(&record.Delete{ID: id})
						h.Gone()
						synctest.Wait()
						if h.removed[0].Load() > before && last != i+1 {
							last = i + 1
							changes++
						}
					}
					time.Sleep(time.Second)
				}
				one, two := hosts[0].removed[0].Load(), hosts[1].removed[0].Load()
				if changes > 1 || one+two > 0 != removed {
					t.Errorf("the hosts removed %d and %d objects, and who removes has changed %d times", one, two, changes)
				}
			})
		})
	}
}

// Of two living hosts with one origin one removes nothing, says so, and goes on by
// itself when the other is gone.
func TestTwoHostsWithOneOrigin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setupAt(t, "one")
		c := b.twin("two")
		ref := b.put()
		for _, h := range []*bench{b, c} {
			h.Keeper = h.open()
			h.end("job", ref)
		}
		stopFirst, stop := b.run(b.Keeper), c.run(c.Keeper)
		time.Sleep(2 * time.Minute)
		if b.contested.Load() { // which of them set the last mark is up to the scheduler
			b, c, stopFirst, stop = c, b, stop, stopFirst
		}
		c.commit(&record.Delete{ID: "job"})
		c.Gone()
		time.Sleep(62 * time.Hour)
		b.want(1)
		b.readable(ref)
		if !c.contested.Load() || b.contested.Load() {
			t.Errorf("contested: the owner %v, the other %v", b.contested.Load(), c.contested.Load())
		}
		// The owner removes what is its own.
		other := b.put()
		b.end("other", other)
		b.Release(other.String(), false)
		b.commit(&record.Delete{ID: "other"})
		b.Gone()
		synctest.Wait()
		b.want(1)
		stopFirst()
		time.Sleep(10 * time.Minute)
		b.want(0)
		if c.contested.Load() {
			t.Error("the owner is gone, and still contests")
		}
		// The roles are changed now.
		defer b.run(b.open())()
		time.Sleep(10 * time.Minute)
		if !b.contested.Load() || c.contested.Load() {
			t.Errorf("contested: the first owner %v, the second %v", b.contested.Load(), c.contested.Load())
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
		b.commit(&record.Delete{ID: "job"})
		defer b.run(b.open())()
		synctest.Wait()
		b.want(0)
	})
}

// A store that was moved to another machine goes on within half a minute, or within
// minutes if its host has crashed.
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
				b.commit(&record.Delete{ID: "job"})
				b.place = "two"
				defer b.run(b.open())()
				soon := 31 * time.Second
				if crash {
					time.Sleep(90 * time.Second)
					b.want(1)
					soon = 3 * time.Minute
				}
				time.Sleep(soon)
				b.want(0)
				if b.contested.Load() {
					t.Error("there is a contest")
				}
			})
		})
	}
}

// A new owner removes what has waited for that, orphans too, as soon as it is one.
func TestOwnerBegins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setupAt(t, "one")
		for i, job := range []string{"job", ""} {
			ref := b.put()
			if i == 0 {
				b.end(job, ref)
			}
		}
		b.commit(&record.Delete{ID: "job"})
		time.Sleep(72 * time.Hour)
		defer b.run(b.open())()
		synctest.Wait()
		b.want(2)
		time.Sleep(31 * time.Second)
		b.want(0)
	})
}

// Who can't tell whether he is the owner removes nothing.
func TestOwnerUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setupAt(t, "one")
		ref := b.put()
		b.end("job", ref)
		b.commit(&record.Delete{ID: "job"})
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
			c.commit(&record.Delete{ID: "job"})
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
