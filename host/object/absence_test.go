package object_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/object"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/state/payload"
	"github.com/jobhost/jobhost/state/payload/payloadtest"
)

// silent is a store that can be made to answer nothing.
type silent struct {
	*payloadtest.Memory
	mu    sync.Mutex // protects quiet
	quiet bool
}

func (s *silent) set(quiet bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quiet = quiet
}

func (s *silent) wait(ctx context.Context) error {
	s.mu.Lock()
	quiet := s.quiet
	s.mu.Unlock()
	if quiet {
		<-ctx.Done()
	}
	return context.Cause(ctx)
}

// Open implements [payload.Store].
func (s *silent) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	return s.Memory.Open(ctx, key)
}

// Create implements [payload.Store].
func (s *silent) Create(ctx context.Context, key string) (payload.Object, error) {
	o, err := s.Memory.Create(ctx, key)
	return &silentObject{o, s, ctx}, err
}

type silentObject struct {
	payload.Object
	s   *silent
	ctx context.Context // of the object
}

// Commit implements [payload.Object].
func (o *silentObject) Commit() error {
	if err := o.s.wait(o.ctx); err != nil {
		return err
	}
	return o.Object.Commit()
}

// setupSilent returns a keeper over such a store, whose Watch runs until the test ends.
func setupSilent(t *testing.T, change ...func(*object.Config)) (*bench, *silent) {
	t.Helper()
	b := setup(t)
	s := &silent{Memory: b.objects}
	set, err := payload.New(payload.Config{Stores: []payload.Named{{Name: "one", Store: s}}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := object.Config{Set: set, Store: b.store}
	for _, c := range change {
		c(&cfg)
	}
	if b.Keeper, err = object.New(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = b.Watch(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return b, s
}

func faultOf(err error) *queue.StoreFault {
	fault, _ := errors.AsType[*queue.StoreFault](err)
	return fault
}

// TestSilentStore: a store that answers nothing is away after seconds, and back within
// seconds after it answers.
func TestSilentStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, s := setupSilent(t)
		back := make(chan struct{}, 10)
		b.Notify(func() { back <- struct{}{} })
		ref, err := b.Put(t.Context(), []byte("there"))
		if err != nil {
			t.Fatal(err)
		}
		s.set(true)
		began := time.Now()
		_, err = b.Open(t.Context(), ref)
		if fault := faultOf(err); fault == nil || fault.Verb != payload.Get || fault.Young || time.Since(began) != 5*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if away := b.Unread(ref.String()); away == nil || b.Unwritten() != nil {
			t.Errorf("away: %+v and %+v", away, b.Unwritten())
		}
		time.Sleep(time.Minute)
		s.set(false)
		began = time.Now()
		<-back
		if took := time.Since(began); took > 10*time.Second || b.Unread(ref.String()) != nil {
			t.Errorf("back after %v", took)
		}
	})
}

// TestPatienceOfCallers: a caller who gives up says nothing of a store, unless it has
// waited for it until its deadline.
func TestPatienceOfCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, s := setupSilent(t)
		ref, err := b.Put(t.Context(), []byte("there"))
		if err != nil {
			t.Fatal(err)
		}
		s.set(true)
		gaveUp := errors.New("gave up")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(gaveUp) })
		if _, err := b.Open(ctx, ref); !errors.Is(err, gaveUp) || faultOf(err) != nil || b.Unread(ref.String()) != nil {
			t.Errorf("a caller who gave up: %v", err)
		}
		ctx, cancel2 := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel2()
		if _, err := b.Open(ctx, ref); !errors.Is(err, context.DeadlineExceeded) || faultOf(err) != nil {
			t.Errorf("a short deadline: %v", err)
		}
		ctx, cancel2 = context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel2()
		if _, err := b.Open(ctx, ref); faultOf(err) == nil {
			t.Errorf("a deadline: %v", err)
		}
	})
}

// TestSilentWrite: a result that a store doesn't take in time is kept, and stored when
// it does.
func TestSilentWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, s := setupSilent(t)
		s.set(true)
		spool, err := b.Spool(t.Context(), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		data := bytes.Repeat([]byte("result"), 30_000)
		if _, err := spool.Write(data); err != nil {
			t.Fatal(err)
		}
		if _, err := spool.Commit(); faultOf(err) == nil || b.Unwritten() == nil {
			t.Fatalf("commit: %v", err)
		}
		kept, can := spool.Keep()
		spool.Abort()
		if !can {
			t.Fatal("it can't be kept")
		}
		stored := make(chan payload.Ref, 1)
		kept.Then(func(ref payload.Ref, err error) {
			if err != nil {
				t.Error(err)
			}
			stored <- ref
		})
		began := time.Now()
		if _, err := b.Put(t.Context(), data); jobhost.CodeOf(err) != jobhost.CodeUnavailable || time.Since(began) > 10*time.Second {
			t.Errorf("a large submit meanwhile: %v after %v", err, time.Since(began))
		}
		time.Sleep(time.Minute)
		s.set(false)
		ref := <-stored
		r, err := b.Open(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if got, err := io.ReadAll(r); !bytes.Equal(got, data) || err != nil {
			t.Errorf("got %d bytes, %v", len(got), err)
		}
	})
}

// TestYoungObject: an object that isn't there is gone when it is old, or was removed here.
func TestYoungObject(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, s := setupSilent(t)
		ref, err := b.Put(t.Context(), []byte("there"))
		if err != nil {
			t.Fatal(err)
		}
		s.Take(ref.Key)
		if _, err := b.Open(t.Context(), ref); faultOf(err) == nil || !faultOf(err).Young || jobhost.CodeOf(err) != jobhost.CodeUnavailable || b.Unread(ref.String()) != nil {
			t.Errorf("young: %v", err)
		}
		time.Sleep(6 * time.Minute)
		if _, err := b.Open(t.Context(), ref); faultOf(err) != nil || jobhost.CodeOf(err) != jobhost.CodeNotFound {
			t.Errorf("old: %v", err)
		}
	})
}

// TestHammerSpools writes results from many goroutines while the store comes and goes:
// each is stored or kept, and no memory is forgotten.
func TestHammerSpools(t *testing.T) {
	t.Parallel()
	b, s := setupSilent(t, func(c *object.Config) { c.KeepBytes = 4 << 20 })
	away := errors.New("away")
	var all, waiting sync.WaitGroup
	stop := make(chan struct{})
	all.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				s.Fail(nil)
				return
			case <-time.After(time.Millisecond):
				s.FailOn([]error{nil, away}[i%2], payload.Put)
			}
		}
	})
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for i := range 100 {
				spool, err := b.Spool(t.Context(), 1<<20)
				if err != nil {
					t.Error(err)
					return
				}
				_, err = spool.Write(make([]byte, 1000*(i+1)))
				if err == nil {
					_, err = spool.Commit()
				}
				if kept, can := spool.Keep(); err != nil && can {
					waiting.Add(1)
					kept.Then(func(payload.Ref, error) { waiting.Done() })
				} else if err != nil && faultOf(err) == nil {
					t.Error(err)
				}
				spool.Abort()
			}
		})
	}
	writers.Wait()
	close(stop)
	all.Wait()
	waiting.Wait()
	if !b.Room() {
		t.Error("there is no room although nothing is kept")
	}
}
