package object_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/object"
	"github.com/jobhost/jobhost/host/queue/queuetest"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/state/payload"
	"github.com/jobhost/jobhost/state/payload/payloadtest"
)

// bench is a keeper over stores in memory.
type bench struct {
	*object.Keeper
	t       *testing.T
	store   *queuetest.Memory
	objects *payloadtest.Memory
	removed [2]atomic.Int64 // with their job, and orphans

	place     string        // of the store; empty = it can't be copied
	contested atomic.Bool   // the last value reported
	markTakes time.Duration // to read a mark, and to set one

	// change changes the configuration of the keepers to come; nil = it is as it is.
	change func(*object.Config)
}

func setup(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, store: queuetest.NewMemory(), objects: payloadtest.NewMemory()}
	t.Cleanup(func() { _ = b.store.Close() })
	b.Keeper = b.open()
	return b
}

// open returns another keeper over the same stores, as after a restart.
func (b *bench) open() *object.Keeper {
	b.t.Helper()
	set, err := payload.New(payload.Config{Stores: []payload.Named{{Name: "one", Store: &slowMarks{b.objects, b.markTakes}}}})
	if err != nil {
		b.t.Fatal(err)
	}
	cfg := object.Config{
		Set: set, Store: b.store, Place: b.place,
		Removed: func(n int, orphans bool) {
			i := 0
			if orphans {
				i = 1
			}
			b.removed[i].Add(int64(n))
		},
		Contested: func(_ string, contested bool) { b.contested.Store(contested) },
	}
	if b.change != nil {
		b.change(&cfg)
	}
	k, err := object.New(b.t.Context(), cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	return k
}

// run runs the housekeeping until the returned function is called.
func (b *bench) run(k *object.Keeper) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = k.Run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

func (b *bench) commit(op record.Op) record.OpResult {
	b.t.Helper()
	answer := make(chan record.OpResult, 1)
	b.store.Commit([]record.Op{op}, func(results []record.OpResult, err error) {
		if err != nil {
			results = []record.OpResult{{Err: err}}
		}
		answer <- results[0]
	})
	result := <-answer
	if result.Err != nil {
		b.t.Fatal(result.Err)
	}
	return result
}

// submit makes a job that refers to an object.
func (b *bench) submit(id string, ref payload.Ref) record.Key {
	b.t.Helper()
	return b.commit(&record.Submit{Job: &record.JobSpec{ID: id, Worker: "w", Tasks: 1, Ref: ref.String()}}).Key
}

func (b *bench) put() payload.Ref {
	b.t.Helper()
	ref, err := b.Put(b.t.Context(), []byte("content"))
	if err != nil {
		b.t.Fatal(err)
	}
	return ref
}

func (b *bench) upload() jobhost.Upload {
	b.t.Helper()
	upload, err := b.Upload(b.t.Context(), strings.NewReader("uploaded"))
	if err != nil {
		b.t.Fatal(err)
	}
	return upload
}

func (b *bench) want(objects int) {
	b.t.Helper()
	if n := b.objects.Len(); n != objects {
		b.t.Errorf("there are %d objects, want %d", n, objects)
	}
}

// TestJanitor: an object is deleted when its job is, at once, and after a restart.
func TestJanitor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		stop := b.run(b.Keeper)
		for i := range 2 {
			ref := b.put()
			key := b.submit(fmt.Sprint("job", i), ref)
			b.Release(ref.String(), false)
			b.commit(&record.Settle{Key: key, Status: record.Succeeded, Attempt: 1})
		}
		b.want(2)
		if result := b.commit(&record.Delete{ID: "job0"}); !result.Gone {
			t.Error("nobody is told")
		}
		b.Gone()
		synctest.Wait()
		b.want(1)
		stop()
		b.commit(&record.Delete{ID: "job1"})
		synctest.Wait()
		b.want(1)
		defer b.run(b.open())()
		synctest.Wait()
		b.want(0)
		if left, err := b.store.Gone(t.Context(), "", 10); len(left) != 0 || err != nil {
			t.Errorf("left: %v, %v", left, err)
		}
		if n, orphans := b.removed[0].Load(), b.removed[1].Load(); n != 2 || orphans != 0 {
			t.Errorf("%d and %d were counted", n, orphans)
		}
	})
}

// TestStoreAway: what can't be deleted now is deleted later, and nothing else waits for it.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		defer b.run(b.Keeper)()
		ref := b.put()
		b.commit(&record.Settle{Key: b.submit("job", ref), Status: record.Succeeded, Attempt: 1})
		b.Release(ref.String(), false)
		b.objects.Fail(errors.New("away"))
		b.commit(&record.Delete{ID: "job"})
		b.Gone()
		time.Sleep(10 * time.Second)
		b.want(1)
		b.objects.Fail(nil)
		time.Sleep(time.Minute)
		b.want(0)
	})
}

// TestDropped: an object made for a refused submit is deleted at once; an uploaded one is
// not.
func TestDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		defer b.run(b.Keeper)()
		ref := b.put()
		upload, err := b.Redeem(t.Context(), b.upload().Ref)
		if err != nil {
			t.Fatal(err)
		}
		b.Release(ref.String(), true)
		b.Release(upload.String(), true)
		b.Release(upload.String(), true) // once too often is nothing
		synctest.Wait()
		b.want(1)
		r, err := b.Open(t.Context(), upload)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if got, err := io.ReadAll(r); string(got) != "uploaded" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// TestSweep removes what a crash has left, and nothing that is referred to, held or young.
func TestSweep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		live, orphan := b.put(), b.put()
		b.submit("job", live)
		b.Release(live.String(), false)
		_ = orphan // its process ended before the commit
		b.upload()
		b.want(3)
		next := b.open() // which holds nothing
		held, err := next.Put(t.Context(), []byte("of a long attempt"))
		if err != nil {
			t.Fatal(err)
		}
		defer b.run(next)()
		time.Sleep(47 * time.Hour)
		b.want(4)
		time.Sleep(14 * time.Hour) // two days have passed, and a sweep since
		b.want(2)
		next.Release(held.String(), false) // its commit was not: the host will never know
		time.Sleep(13 * time.Hour)
		b.want(1)
		if n, orphans := b.removed[0].Load(), b.removed[1].Load(); n != 0 || orphans != 3 {
			t.Errorf("%d and %d were counted", n, orphans)
		}
	})
}

// While the clock may be wrong, nothing is too old.
func TestNoSweepBeforeTheClockIsTrusted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.put() // an orphan, as soon as its process has ended
		time.Sleep(72 * time.Hour)
		next := b.open()
		next.Calm(time.Now().Add(time.Hour))
		defer b.run(next)()
		time.Sleep(50 * time.Minute)
		b.want(1)
		time.Sleep(13 * time.Hour)
		b.want(0)
	})
}

// TestSweepLeavesOthers: what another database refers to is none of this one's
// business, though both have the same store.
func TestSweepLeavesOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, other := setup(t), setup(t)
		other.objects = b.objects
		other.Keeper = other.open()
		ref := other.put()
		other.submit("job", ref)
		other.Release(ref.String(), false)
		b.put() // an orphan, as soon as its process has ended
		defer b.run(b.open())()
		time.Sleep(62 * time.Hour)
		b.want(1)
		if _, err := other.Open(t.Context(), ref); err != nil {
			t.Error(err)
		}
	})
}

// sweeper is a store in which uploads that were cut off leave something.
type sweeper struct {
	*payloadtest.Memory
	sweeps atomic.Int64
	away   atomic.Bool
}

func (s *sweeper) Sweep(context.Context) error {
	s.sweeps.Add(1)
	if s.away.Load() {
		return errors.New("the store is away")
	}
	return nil
}

// TestSweepOfStores: what uploads have left in a store that were cut off is removed with the orphans, and soon again after
// an error, which doesn't keep orphans from being removed.
func TestSweepOfStores(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.put() // an orphan, as soon as its process has ended
		store := &sweeper{Memory: b.objects}
		store.away.Store(true)
		set, err := payload.New(payload.Config{Stores: []payload.Named{{Name: "one", Store: store}}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(49 * time.Hour)
		k, err := object.New(t.Context(), object.Config{Set: set, Store: b.store})
		if err != nil {
			t.Fatal(err)
		}
		defer b.run(k)()
		synctest.Wait()
		b.want(0)
		time.Sleep(61 * time.Second)
		if n := store.sweeps.Load(); n != 2 {
			t.Errorf("%d sweeps", n)
		}
		store.away.Store(false)
		time.Sleep(25 * time.Hour)
		if n := store.sweeps.Load(); n < 4 || n > 30 {
			t.Errorf("%d sweeps after a day", n)
		}
	})
}

func TestExpired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		upload := b.upload()
		if time.Until(upload.ExpiresAt).Round(time.Second) != time.Hour {
			t.Errorf("expires at %v", upload.ExpiresAt)
		}
		time.Sleep(time.Hour - time.Second)
		ref, err := b.Redeem(t.Context(), upload.Ref)
		if err != nil || ref.Size != 8 {
			t.Fatalf("%+v, %v", ref, err)
		}
		b.Release(ref.String(), false)
		time.Sleep(2 * time.Second)
		if late, err := b.Redeem(t.Context(), upload.Ref); jobhost.CodeOf(err) != jobhost.CodeInvalid || late != ref {
			t.Errorf("after its time: %+v, %v", late, err)
		}
	})
}

// TestTokens: a token can be neither forged nor changed.
func TestTokens(t *testing.T) {
	t.Parallel()
	b := setup(t)
	own := b.put()
	token := b.upload().Ref
	other := setup(t)
	foreign := other.upload().Ref
	bad := []string{
		"", "u1.", "u1..", own.String(), "u1." + own.String(), foreign, token + "=", token + "A", token[:len(token)-1], " " + token, token + "\n",
		strings.Replace(token, "u1.", "u2.", 1), strings.Replace(token, ".", "..", 1), strings.ToUpper(token),
	}
	for i := range len(token) {
		changed := []byte(token)
		changed[i] ^= 1
		bad = append(bad, string(changed))
	}
	for _, text := range bad {
		if ref, err := b.Redeem(t.Context(), text); jobhost.CodeOf(err) != jobhost.CodeInvalid || ref != (payload.Ref{}) {
			t.Errorf("%q: %+v, %v", text, ref, err)
		}
	}
	if _, err := b.open().Redeem(t.Context(), token); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}

func FuzzRedeem(f *testing.F) {
	store, objects := queuetest.NewMemory(), payloadtest.NewMemory()
	f.Cleanup(func() { _ = store.Close() })
	set, err := payload.New(payload.Config{Stores: []payload.Named{{Name: "one", Store: objects}}})
	if err != nil {
		f.Fatal(err)
	}
	k, err := object.New(context.Background(), object.Config{Set: set, Store: store})
	if err != nil {
		f.Fatal(err)
	}
	upload, err := k.Upload(context.Background(), strings.NewReader("x"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(upload.Ref)
	f.Add("u1.bG9jYWw6.AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := k.Redeem(context.Background(), text); err == nil && text != upload.Ref {
			t.Errorf("%q was taken", text)
		}
	})
}

// TestTaken: an upload that was deleted with its job can't be submitted again.
func TestTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		defer b.run(b.Keeper)()
		token := b.upload().Ref
		ref, err := b.Redeem(t.Context(), token)
		if err != nil {
			t.Fatal(err)
		}
		b.commit(&record.Settle{Key: b.submit("job", ref), Status: record.Succeeded, Attempt: 1})
		b.commit(&record.Delete{ID: "job"})
		b.Gone()
		synctest.Wait()
		b.want(1) // it is held: submitting it gives a conflict
		b.Release(ref.String(), false)
		time.Sleep(2 * time.Minute)
		b.want(0)
		if _, err := b.Redeem(t.Context(), token); jobhost.CodeOf(err) != jobhost.CodeInvalid {
			t.Errorf("got %v", err)
		}
	})
}

// TestHammer uploads, redeems, drops and deletes while janitor and sweep run.
func TestHammer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stop := b.run(b.Keeper)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 50 {
				upload, err := b.Upload(t.Context(), bytes.NewReader(make([]byte, g)))
				if err != nil {
					t.Error(err)
					return
				}
				ref, err := b.Redeem(t.Context(), upload.Ref)
				if err != nil {
					t.Error(err)
					return
				}
				id := fmt.Sprintf("%d-%d", g, i)
				key := b.submit(id, ref)
				b.Release(ref.String(), false)
				b.commit(&record.Settle{Key: key, Status: record.Succeeded, Attempt: 1})
				b.commit(&record.Delete{ID: id})
				b.Gone()
				dropped := b.put()
				b.Release(dropped.String(), true)
			}
		})
	}
	all.Wait()
	for b.objects.Len() > 0 {
		b.Gone()
	}
	stop()
}
