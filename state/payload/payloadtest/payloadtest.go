// Package payloadtest is the suite that every [payload.Store] passes. A store's
// own test is a harness: how to open an empty one, and how to do to it what
// nobody should.
package payloadtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost/state/payload"
)

// Harness is how the suite gets at stores.
type Harness struct {
	// Open returns an empty store that is closed when the test ends. Each has a
	// place of its own.
	Open func(t testing.TB) payload.Store
	// Again returns another store on the same place; nil = it can't be.
	Again func(t testing.TB, s payload.Store) payload.Store
	// Damage changes a byte of what is kept of an object.
	Damage func(t testing.TB, s payload.Store, key string)
	// Left tells what there is in the place besides objects that are whole.
	Left func(t testing.TB, s payload.Store) []string
	// Lose removes the beginning of an object that is being written and of which 9 MiB
	// were, as a server may that was restarted; nil = it is with the writer.
	Lose func(t testing.TB, s payload.Store, key string)
	// Gone returns a store whose server is gone; nil = there is no server.
	Gone func(t testing.TB) payload.Store
	// InMemory says that the store is in the memory of the test, so that nothing
	// is large there.
	InMemory bool
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	t.Run("large stream", func(t *testing.T) { testLarge(t, h) }) // alone: it measures memory
	for _, c := range []struct {
		name string
		run  func(t *testing.T, h Harness)
	}{
		{"round trip", testRoundTrip},
		{"unseen before commit", testUnseen},
		{"aborted", testAborted},
		{"cancelled", testCancelled},
		{"missing", testMissing},
		{"delete", testDelete},
		{"list", testList},
		{"again", testAgain},
		{"half read", testHalfRead},
		{"cut off", testCutOff},
		{"lost meanwhile", testLost},
		{"free space", testFree},
		{"server gone", testGone},
		{"hammer", testHammer},
		{"sets", testSets},
		{"damage", testDamage},
		{"keys", testKeys},
		{"exchanged", testExchanged},
		{"marks", testMarks},
		{"limit", testLimit},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, h)
		})
	}
}

// epoch is when the objects of the suite are made, unless they say otherwise.
var epoch = time.UnixMilli(1_700_000_000_000)

// content returns bytes that don't compress well and don't repeat, to be read only:
// they are the same for all.
func content(n int) []byte { return mostContent()[:n:n] }

var mostContent = sync.OnceValue(func() []byte {
	b := make([]byte, 10<<20)
	_, _ = NewStream(1).Read(b) // it fills b, and has no errors
	return b
})

// put makes an object.
func put(t testing.TB, s payload.Store, key string, data []byte) {
	t.Helper()
	o, err := s.Create(t.Context(), key)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	for piece := range slices.Chunk(data, 100_000) {
		if n, err := o.Write(piece); n != len(piece) || err != nil {
			t.Fatalf("write: %d of %d bytes, %v", n, len(piece), err)
		}
	}
	if err := o.Commit(); err != nil {
		t.Fatalf("commit: %v", err)
	}
	o.Abort() // does nothing
}

// get returns the bytes of an object.
func get(ctx context.Context, s payload.Store, key string) ([]byte, error) {
	r, err := s.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// want fails the test unless an object has these bytes.
func want(t testing.TB, s payload.Store, key string, data []byte) {
	t.Helper()
	r, err := s.Open(t.Context(), key)
	if err != nil {
		t.Fatalf("object %s: %v", key, err)
	}
	defer r.Close()
	// The race detector makes it slow to copy what was read each time that more is.
	got := bytes.NewBuffer(make([]byte, 0, len(data)+bytes.MinRead))
	if _, err := got.ReadFrom(r); err != nil || !bytes.Equal(got.Bytes(), data) {
		t.Fatalf("object %s: got %d bytes, %v; want %d", key, got.Len(), err, len(data))
	}
}

// wantNone fails the test unless there is no such object.
func wantNone(t testing.TB, s payload.Store, key string) {
	t.Helper()
	if got, err := get(t.Context(), s, key); !errors.Is(err, payload.ErrNotFound) {
		t.Fatalf("object %s: got %d bytes, %v; want none", key, len(got), err)
	}
}

// wantKeys fails the test unless these are the objects that there are.
func wantKeys(t testing.TB, s payload.Store, keys ...string) {
	t.Helper()
	got, err := s.List(t.Context(), "", 1000)
	slices.Sort(keys)
	if err != nil || !slices.Equal(got, keys) {
		t.Fatalf("list: got %v, %v; want %v", got, err, keys)
	}
}

func wantClean(t testing.TB, h Harness, s payload.Store) {
	t.Helper()
	if left := h.Left(t, s); len(left) > 0 {
		t.Fatalf("left behind: %v", left)
	}
}

func testRoundTrip(t *testing.T, h Harness) {
	s := h.Open(t)
	for i, size := range []int{0, 1, 65_535, 65_536, 65_537, 1 << 20, 1<<20 + 1, 8 << 20, 9<<20 + 5} {
		key := payload.NewKey(epoch.Add(time.Duration(i) * time.Hour))
		put(t, s, key, content(size))
		want(t, s, key, content(size))
	}
	wantClean(t, h, s)
}

func testUnseen(t *testing.T, h Harness) {
	s := h.Open(t)
	key := payload.NewKey(epoch)
	o, err := s.Create(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Write(content(9 << 20)); err != nil {
		t.Fatal(err)
	}
	wantNone(t, s, key)
	wantKeys(t, s)
	if err := o.Commit(); err != nil {
		t.Fatal(err)
	}
	want(t, s, key, content(9<<20))
	wantKeys(t, s, key)
}

func testAborted(t *testing.T, h Harness) {
	s := h.Open(t)
	for _, size := range []int{0, 10, 9 << 20} {
		key := payload.NewKey(epoch)
		o, err := s.Create(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Write(content(size)); err != nil {
			t.Fatal(err)
		}
		o.Abort()
		o.Abort() // once more is fine
		wantNone(t, s, key)
	}
	wantKeys(t, s)
	wantClean(t, h, s)
}

var errGaveUp = errors.New("gave up")

func testCancelled(t *testing.T, h Harness) {
	s := h.Open(t)
	set := newSet(t, s, payload.Config{})
	ctx, cancel := context.WithCancelCause(t.Context())
	source := io.MultiReader(bytes.NewReader(content(9<<20)), readerFunc(func([]byte) (int, error) {
		cancel(errGaveUp)
		return 100, nil
	}), bytes.NewReader(content(9<<20)))
	if _, err := set.Put(ctx, source, 1<<30); !errors.Is(err, errGaveUp) {
		t.Fatalf("got %v, want the cause of the context", err)
	}
	wantKeys(t, s)
	wantClean(t, h, s)
}

type readerFunc func([]byte) (int, error)

// Read calls the function, once.
func (f readerFunc) Read(p []byte) (int, error) {
	n, _ := f(p)
	return n, io.EOF
}

func testMissing(t *testing.T, h Harness) {
	s := h.Open(t)
	wantNone(t, s, payload.NewKey(epoch))
	for _, key := range []string{"", "..", "../../etc/passwd", "0", "no-key"} {
		if _, err := get(t.Context(), s, key); err == nil {
			t.Errorf("there is an object %q", key)
		}
	}
}

func testDelete(t *testing.T, h Harness) {
	s := h.Open(t)
	var keys []string
	for i := range 70 {
		keys = append(keys, payload.NewKey(epoch.Add(time.Duration(i)*time.Minute)))
		put(t, s, keys[i], []byte(fmt.Sprint(i)))
	}
	for range 2 { // what is gone can be deleted again
		if err := s.Delete(t.Context(), append(keys[:69:69], payload.NewKey(epoch))); err != nil {
			t.Fatal(err)
		}
		wantKeys(t, s, keys[69])
	}
	want(t, s, keys[69], []byte("69"))
	wantNone(t, s, keys[0])
	if err := s.Delete(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	put(t, s, keys[0], []byte("again")) // where its neighbours were
	want(t, s, keys[0], []byte("again"))
}

func testList(t *testing.T, h Harness) {
	s := h.Open(t)
	var keys []string
	for i := range 25 {
		keys = append(keys, payload.NewKey(epoch.Add(time.Duration(i)*7*time.Minute)))
	}
	for _, i := range []int{24, 3, 17} {
		put(t, s, keys[i], nil)
	}
	for i, key := range keys {
		if i != 24 && i != 3 && i != 17 {
			put(t, s, key, nil)
		}
	}
	slices.Sort(keys)
	for _, limit := range []int{1, 7, 25, 1000} {
		var got []string
		for after := ""; ; {
			page, err := s.List(t.Context(), after, limit)
			if err != nil || len(page) > limit {
				t.Fatalf("a page of %d: %v, %v", limit, page, err)
			}
			got = append(got, page...)
			if len(page) < limit {
				break
			}
			after = page[len(page)-1]
		}
		if !slices.Equal(got, keys) {
			t.Fatalf("pages of %d: got %v, want %v", limit, got, keys)
		}
	}
}

func testAgain(t *testing.T, h Harness) {
	if h.Again == nil {
		t.Skip("this store is gone when it is closed")
	}
	s := h.Open(t)
	key := payload.NewKey(epoch)
	put(t, s, key, content(2<<20))
	again := h.Again(t, s)
	want(t, again, key, content(2<<20))
	wantKeys(t, again, key)
}

func testHalfRead(t *testing.T, h Harness) {
	s := h.Open(t)
	key := payload.NewKey(epoch)
	put(t, s, key, content(3<<20))
	r, err := s.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	want(t, s, key, content(3<<20))
}

// testGone uses a store whose server is gone in all ways at once, since each may wait for the server for seconds.
func testGone(t *testing.T, h Harness) {
	if h.Gone == nil {
		t.Skip("this store has no server")
	}
	s := h.Gone(t)
	set := newSet(t, s, payload.Config{})
	var uses sync.WaitGroup
	for name, use := range map[string]func() error{
		"put": func() error {
			_, err := set.Put(t.Context(), bytes.NewReader(content(100)), 1000)
			return err
		},
		"open": func() error {
			_, err := get(t.Context(), s, payload.NewKey(epoch))
			return err
		},
		"a large object": func() error { return write(t.Context(), s, payload.NewKey(epoch), content(9<<20)) },
	} {
		uses.Go(func() {
			if err := use(); err == nil || payload.Permanent(err) {
				t.Errorf("%s: got %v, want an error that may pass", name, err)
			}
		})
	}
	uses.Go(func() {
		if err := s.Delete(t.Context(), []string{payload.NewKey(epoch)}); err == nil {
			t.Error("delete went well")
		}
	})
	uses.Go(func() {
		if _, err := s.List(t.Context(), "", 1); err == nil {
			t.Error("list went well")
		}
	})
	uses.Wait()
}

// write makes an object in one piece, and removes what there is of one that fails.
func write(ctx context.Context, s payload.Store, key string, data []byte) error {
	o, err := s.Create(ctx, key)
	if err != nil {
		return err
	}
	defer o.Abort()
	if _, err := o.Write(data); err != nil {
		return err
	}
	return o.Commit()
}

func testHammer(t *testing.T, h Harness) {
	s := h.Open(t)
	done := make(chan error, 8)
	for g := range cap(done) {
		go func() {
			done <- hammer(t.Context(), s, g)
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	wantKeys(t, s)
	wantClean(t, h, s)
}

// hammer makes, reads and removes objects in the same few minutes as others.
func hammer(ctx context.Context, s payload.Store, g int) error {
	for i := range 20 {
		key := payload.NewKey(epoch.Add(time.Duration(i) * 10 * time.Minute))
		data := content(1000 * (g + 1))
		o, err := s.Create(ctx, key)
		if err != nil {
			return err
		}
		if _, err := o.Write(data); err != nil {
			return err
		}
		if err := o.Commit(); err != nil {
			return err
		}
		got, err := get(ctx, s, key)
		if err != nil || !bytes.Equal(got, data) {
			return fmt.Errorf("object of goroutine %d: %d bytes, %w", g, len(got), err)
		}
		if err := s.Delete(ctx, []string{key}); err != nil {
			return err
		}
	}
	return nil
}
