package object_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/object"
	"github.com/jobhost/jobhost/host/queue/record"
)

// shared is a store as one host of several sees it.
type shared struct {
	record.Store
	ahead         time.Duration // of the store's clock, against the host's
	holding, over atomic.Bool
	// judged is called when the store was asked which objects have rows; nil = by nobody.
	judged func(names []string)
}

var _ record.Leased = (*shared)(nil)

func (s *shared) Now() time.Time { return time.Now().Add(s.ahead) }

func (s *shared) Holding() bool { return s.holding.Load() }

func (s *shared) Err() error {
	if s.over.Load() {
		return fmt.Errorf("%w: in this test", record.ErrTermOver)
	}
	return nil
}

func (s *shared) Live(ctx context.Context, names []string) ([]bool, error) {
	live, err := s.Store.Live(ctx, names)
	if s.judged != nil {
		s.judged(names)
	}
	return live, err
}

// on makes keepers to come see the store like that.
func (b *bench) on(s *shared) {
	s.Store = b.store
	b.change = func(c *object.Config) { c.Store = s }
}

// Nothing is deleted while another host may lead soon, and nothing when one leads.
func TestNothingIsDeletedWithoutTheTerm(t *testing.T) {
	t.Parallel()
	for _, over := range []bool{false, true} {
		t.Run(fmt.Sprint("over=", over), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t)
				s := &shared{}
				b.on(s)
				gone := b.put()
				b.commit(&record.Settle{Key: b.submit("job", gone), Status: record.Succeeded, Attempt: 1})
				b.commit(&record.Delete{ID: "job"}) // for the janitor
				b.Release(gone.String(), false)
				b.put() // for the sweep
				time.Sleep(72 * time.Hour)
				k := b.open()
				dropped, err := k.Put(t.Context(), []byte("never submitted"))
				if err != nil {
					t.Fatal(err)
				}
				k.Release(dropped.String(), true)
				s.holding.Store(true)
				defer b.run(k)()
				time.Sleep(time.Hour)
				b.want(3)
				s.holding.Store(false)
				s.over.Store(over)
				time.Sleep(72 * time.Hour)
				if over {
					b.want(3)
				} else {
					b.want(0)
				}
			})
		})
	}
}

// A host that is stopped after it has judged, and goes on when its term is over, deletes nothing.
func TestStoppedBetweenJudgeAndDelete(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		s := &shared{}
		s.judged = func([]string) { s.over.Store(true) }
		b.on(s)
		b.put()
		time.Sleep(72 * time.Hour)
		defer b.run(b.open())()
		time.Sleep(72 * time.Hour)
		if !s.over.Load() {
			t.Error("the sweep looked at nothing")
		}
		b.want(1)
	})
}

// No upload can become a job's once a host, which may not know that another one leads, has judged it to be an orphan:
// its token is no older than an orphan, by the clock of the store, however long the upload takes and whatever the clock of
// the host shows.
func TestNoUploadOutlivesAnOrphan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		hours := func(name string, least, most int) time.Duration {
			return time.Duration(rapid.IntRange(least*60, most*60).Draw(rt, name)) * time.Minute
		}
		orphanAge, uploadFor := hours("orphan", 1, 48), hours("upload", 0, 96)+time.Second
		takes, ahead := hours("takes", 0, 60), hours("ahead", -12, 12)
		synctest.Test(t, func(t *testing.T) {
			b := setup(t)
			open := func(s *shared) *object.Keeper {
				b.change = func(c *object.Config) { c.Store, c.OrphanAge, c.UploadFor = s, orphanAge, uploadFor }
				return b.open()
			}
			leads := open(&shared{Store: b.store, ahead: ahead})
			old := &shared{Store: b.store, ahead: ahead}
			stopped := open(old)
			var token atomic.Pointer[jobhost.Upload]
			old.judged = func(names []string) {
				upload := token.Load()
				if upload == nil {
					return
				}
				ref, err := leads.Redeem(t.Context(), upload.Ref)
				if err == nil && slices.Contains(names, ref.Name()) {
					t.Errorf("an upload was judged that can be submitted until %v", upload.ExpiresAt)
				}
				if err == nil {
					leads.Release(ref.String(), false)
				}
			}
			defer b.run(stopped)()
			upload, err := leads.Upload(t.Context(), io.MultiReader(strings.NewReader("a"), &slowReader{takes}))
			if err != nil {
				t.Fatal(err)
			}
			token.Store(&upload)
			time.Sleep(200 * time.Hour)
			if _, err := leads.Redeem(t.Context(), upload.Ref); jobhost.CodeOf(err) != jobhost.CodeInvalid {
				t.Errorf("after all that time: %v", err)
			}
			b.want(0)
		})
	})
}

// slowReader takes a while to tell that there is nothing.
type slowReader struct{ takes time.Duration }

func (r *slowReader) Read([]byte) (int, error) {
	time.Sleep(r.takes)
	return 0, io.EOF
}

// A reference is for one job, also after that is gone: the object may be deleted at any time.
func TestReferenceNeverComesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		upload := b.upload()
		again := func() error {
			ref, err := b.Redeem(t.Context(), upload.Ref)
			if err != nil {
				return err
			}
			defer b.Release(ref.String(), false)
			results := make(chan error, 1)
			b.store.Commit([]record.Op{&record.Submit{Job: &record.JobSpec{ID: fmt.Sprint(time.Now()), Worker: "w", Tasks: 1, Ref: ref.String()}}},
				func(r []record.OpResult, _ error) { results <- r[0].Err })
			return <-results
		}
		ref, err := b.Redeem(t.Context(), upload.Ref)
		if err != nil {
			t.Fatal(err)
		}
		b.commit(&record.Settle{Key: b.submit("job", ref), Status: record.Succeeded, Attempt: 1})
		b.Release(ref.String(), false)
		for _, step := range []func(){
			func() {},
			func() { b.commit(&record.Delete{ID: "job"}) }, // the object is there still
			func() {
				defer b.run(b.Keeper)()
				synctest.Wait()
				b.want(0)
			},
		} {
			step()
			if err := again(); jobhost.CodeOf(err) != jobhost.CodeInvalid && jobhost.CodeOf(err) != jobhost.CodeConflict {
				t.Errorf("it was submitted again: %v", err)
			}
		}
	})
}
