package pgpayload_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
	"github.com/jobhost/jobhost/state/payload"
	"github.com/jobhost/jobhost/state/payload/payloadtest"
	"github.com/jobhost/jobhost/state/payload/pgpayload"
)

const pieceBytes = 256 << 10

// content returns bytes that are the same for the same seed.
func content(seed uint64, n int) []byte {
	b := make([]byte, n)
	_, _ = payloadtest.NewStream(seed).Read(b) // it fills b, and has no errors
	return b
}

// write makes an object, and removes it if that fails.
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

func read(ctx context.Context, s payload.Store, key string) ([]byte, error) {
	r, err := s.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	return io.ReadAll(r)
}

// cuts calls f with numbers of bytes after which to cut connections, in both directions, while an object of some bytes goes
// one way. Most are near the beginning and the ends of pieces; JOBHOST_CHAOS=1 (make chaos) asks for many more.
func cuts(goes postgres.Direction, size int64, f func(way postgres.Direction, after int64)) {
	step := int64(211)
	if os.Getenv("JOBHOST_CHAOS") != "" {
		step = 13
	}
	near := func(way postgres.Direction, at int64) {
		for k := max(0, at-300) + rand.Int64N(step); k < at+1500; k += step {
			f(way, k)
		}
	}
	near(postgres.ToServer, 0)
	near(postgres.ToClient, 0)
	for at := int64(pieceBytes); at <= size; at += pieceBytes {
		near(goes, at)
	}
}

// TestCut cuts the connections while objects are written, one after the other. Another host, whose connections stay, sees
// each one whole or not at all, at every time, and what was acknowledged is there.
func TestCut(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	proxy := postgres.NewProxy(t, server.Address())
	schema := server.Schema(t)
	s := pgpayload.New(open(t, server.URLAt(proxy.Port()), schema))
	db := open(t, server.URL(), schema)
	other := pgpayload.New(db)
	data := content(1, 2*pieceBytes+1000)
	watch := startWatch(t, other, data)
	try := func(what string) (written bool) {
		key := payload.NewKey(time.Now())
		watch.look(key)
		err := write(t.Context(), s, key, data)
		got, readErr := read(t.Context(), other, key)
		whole := readErr == nil && bytes.Equal(got, data)
		if !whole && (err == nil || !errors.Is(readErr, payload.ErrNotFound)) || payload.Permanent(err) {
			t.Fatalf("%s: %v, and there are %d bytes, %v", what, err, len(got), readErr)
		}
		if err := other.Delete(t.Context(), []string{key}); err != nil {
			t.Fatal(err)
		}
		return err == nil
	}
	cuts(postgres.ToServer, int64(len(data)), func(way postgres.Direction, after int64) {
		proxy.CutAfter(way, after)
		if what := fmt.Sprintf("cut after %d bytes in direction %d", after, way); !try(what) {
			t.Errorf("%s: it was not sent again", what)
		}
		proxy.CutAfter(way, -1)
	})
	grows := int64(8) // each write that can't succeed takes the patience of a store, which is seconds
	if os.Getenv("JOBHOST_CHAOS") != "" {
		grows = 1
	}
	for every := int64(3000); every < 4*pieceBytes; every += grows * (every/4 + rand.Int64N(every/4)) {
		proxy.CutEvery(postgres.ToServer, every)
		if try(fmt.Sprintf("cut every %d bytes", every)) && every < pieceBytes {
			t.Errorf("cut every %d bytes: it was written", every)
		}
	}
	watch.stop()
	exec(t, db, "UPDATE jobhost.payload_partial SET written=written-interval '3 days'")
	if err := other.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list := left(t, db); len(list) > 0 {
		t.Errorf("left behind: %v", list)
	}
}

// watch reads an object every few milliseconds, while it is written.
type watch struct {
	mu   sync.Mutex // protects key
	key  string
	over chan struct{}
	done sync.WaitGroup
}

func startWatch(t *testing.T, s payload.Store, data []byte) *watch {
	w := &watch{over: make(chan struct{})}
	w.done.Go(func() {
		tick := time.NewTicker(3 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-w.over:
				return
			case <-tick.C:
			}
			w.mu.Lock()
			key := w.key
			w.mu.Unlock()
			got, err := read(t.Context(), s, key)
			if err == nil && !bytes.Equal(got, data) || err != nil && !errors.Is(err, payload.ErrNotFound) {
				t.Errorf("object %s: %d bytes, %v", key, len(got), err)
				return
			}
		}
	})
	return w
}

func (w *watch) look(key string) {
	w.mu.Lock()
	w.key = key
	w.mu.Unlock()
}

func (w *watch) stop() {
	close(w.over)
	w.done.Wait()
}

// TestCutReading cuts the connections while an object is read: the reader gets all of it or an error.
func TestCutReading(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	proxy := postgres.NewProxy(t, server.Address())
	s := pgpayload.New(open(t, server.URLAt(proxy.Port()), server.Schema(t)))
	key, data := payload.NewKey(time.Now()), content(2, 5*pieceBytes+1000)
	if err := write(t.Context(), s, key, data); err != nil {
		t.Fatal(err)
	}
	cuts(postgres.ToClient, int64(len(data)), func(way postgres.Direction, after int64) {
		proxy.CutAfter(way, after)
		got, err := read(t.Context(), s, key)
		if err == nil && !bytes.Equal(got, data) || payload.Permanent(err) {
			t.Fatalf("cut after %d bytes in direction %d: %d bytes, %v", after, way, len(got), err)
		}
	})
}

// TestServerCrashes: pieces that the server has lost in a crash are noticed, and what was acknowledged is not lost.
func TestServerCrashes(t *testing.T) {
	t.Parallel()
	server := postgres.Start(t, "fsync=on", "full_page_writes=on", "wal_writer_delay=10s")
	db := open(t, server.URL(), "crashes")
	s := pgpayload.New(db)
	for i := range 3 {
		kept, cut := payload.NewKey(time.Now()), payload.NewKey(time.Now())
		data := content(uint64(i), 4*pieceBytes)
		if err := write(t.Context(), s, kept, data); err != nil {
			t.Fatal(err)
		}
		o, err := s.Create(t.Context(), cut)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Write(data[:2*pieceBytes+1]); err != nil {
			t.Fatal(err)
		}
		server.Crash(t)
		server.Restart(t)
		if got, err := read(t.Context(), s, kept); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("acknowledged before the crash: %d bytes, %v", len(got), err)
		}
		_, err = o.Write(data[2*pieceBytes+1:])
		if err == nil {
			err = o.Commit()
		}
		got, readErr := read(t.Context(), s, cut)
		switch {
		case err == nil && !bytes.Equal(got, data), err != nil && !errors.Is(readErr, payload.ErrNotFound):
			t.Errorf("written across the crash: %v, and there are %d bytes, %v", err, len(got), readErr)
		}
		t.Logf("an upload across the crash: %v", err)
		o.Abort()
		if list := left(t, db); len(list) > 0 {
			t.Errorf("left behind: %v", list)
		}
	}
}

// TestSweep: what a host leaves that is killed within an upload is removed after two days, and not before. The upload of a
// host that is only slow then fails, and does no harm.
func TestSweep(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	db := open(t, server.URL(), server.Schema(t))
	s := pgpayload.New(db)
	begin := func() (string, payload.Object) {
		key := payload.NewKey(time.Now())
		o, err := s.Create(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Write(content(3, 150*pieceBytes)); err != nil { // more than one transaction removes
			t.Fatal(err)
		}
		return key, o
	}
	old, slow := begin()
	young, other := begin()
	age := func(key string, by time.Duration) {
		exec(t, db, "UPDATE jobhost.payload_partial SET written=written-make_interval(secs => $2) WHERE key=$1", key, by.Seconds())
	}
	age(young, 47*time.Hour)
	age(old, 49*time.Hour)
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := exec(t, db, "SELECT FROM jobhost.payload_piece WHERE key=$1", old); n != 0 {
		t.Errorf("%d pieces are left", n)
	}
	if err := other.Commit(); err != nil {
		t.Error(err)
	}
	if err := slow.Commit(); err == nil || payload.Permanent(err) {
		t.Errorf("commit of a removed upload: %v", err)
	}
	if got, err := read(t.Context(), s, young); err != nil || !bytes.Equal(got, content(3, 150*pieceBytes)) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	slow.Abort()
	if list := left(t, db); len(list) > 0 {
		t.Errorf("left behind: %v", list)
	}
}

// TestDeadTakesNothing: an upload that is being removed takes no more pieces, which would stay.
func TestDeadTakesNothing(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	db := open(t, server.URL(), server.Schema(t))
	s := pgpayload.New(db)
	key := payload.NewKey(time.Now())
	o, err := s.Create(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Write(content(6, pieceBytes+1)); err != nil {
		t.Fatal(err)
	}
	exec(t, db, "UPDATE jobhost.payload_partial SET dead=true")
	if _, err := o.Write(content(6, 2*pieceBytes)); err == nil || payload.Permanent(err) {
		t.Errorf("write: %v", err)
	}
	if n := exec(t, db, "SELECT FROM jobhost.payload_piece"); n != 1 {
		t.Errorf("there are %d pieces", n)
	}
	o.Abort()
	if list := left(t, db); len(list) > 0 {
		t.Errorf("left behind: %v", list)
	}
}

// TestSweepSparesObjects: a statement that was sent twice, whose first copy arrived after the object was whole, is not taken
// for an upload that was cut off.
func TestSweepSparesObjects(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	db := open(t, server.URL(), server.Schema(t))
	s := pgpayload.New(db)
	key, data := payload.NewKey(time.Now()), content(4, 3*pieceBytes)
	if err := write(t.Context(), s, key, data); err != nil {
		t.Fatal(err)
	}
	exec(t, db, "INSERT INTO jobhost.payload_partial VALUES ($1, now()-interval '3 days', false)", key)
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := read(t.Context(), s, key); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if list := left(t, db); len(list) > 0 {
		t.Errorf("left behind: %v", list)
	}
}

// TestDeleteIsCutOff: what a deletion leaves that was cut off is removed by the sweep, however young it is.
func TestDeleteIsCutOff(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	proxy := postgres.NewProxy(t, server.Address())
	schema := server.Schema(t)
	near := pgpayload.New(open(t, server.URLAt(proxy.Port()), schema))
	db := open(t, server.URL(), schema)
	s := pgpayload.New(db)
	keys := make([]string, 130)
	for i := range keys {
		keys[i] = payload.NewKey(time.Now())
		if err := write(t.Context(), s, keys[i], []byte(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	proxy.Close()
	if err := near.Delete(t.Context(), keys); err == nil {
		t.Error("a server that is gone has deleted something")
	}
	// As if it had come that far.
	exec(t, db, "WITH gone AS (DELETE FROM jobhost.payload_object RETURNING key) INSERT INTO jobhost.payload_partial SELECT key, now(), true FROM gone")
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list := left(t, db); len(list) > 0 {
		t.Errorf("%d are left behind", len(list))
	}
}

// TestReadWhileDeleted: the reader of an object that is deleted gets an error, never the end.
func TestReadWhileDeleted(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	s := pgpayload.New(open(t, server.URL(), server.Schema(t)))
	key := payload.NewKey(time.Now())
	if err := write(t.Context(), s, key, content(5, 9*pieceBytes)); err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if _, err := io.ReadFull(r, make([]byte, pieceBytes)); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), []string{key}); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, r); !errors.Is(err, payload.ErrNotFound) {
		t.Errorf("%d more bytes, %v", n, err)
	}
}

// TestManyAtOnce: uploads and readers that wait for their guests and clients hold no connection. There are more of them
// than connections, and each goes on.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	db := open(t, server.URL(), server.Schema(t))
	s := pgpayload.New(db)
	const many, size = 20, 6 * pieceBytes
	objects, readers, keys := make([]payload.Object, many), make([]io.ReadCloser, many), make([]string, many)
	for i := range many {
		var err error
		keys[i] = payload.NewKey(time.Now())
		if objects[i], err = s.Create(t.Context(), keys[i]); err != nil {
			t.Fatal(err)
		}
		if _, err := objects[i].Write(content(uint64(i), size)[:size/2]); err != nil {
			t.Fatal(err)
		}
	}
	for i, o := range objects {
		if _, err := o.Write(content(uint64(i), size)[size/2:]); err != nil {
			t.Fatal(err)
		}
		if err := o.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	for i, key := range keys {
		var err error
		if readers[i], err = s.Open(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(readers[i], make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
	}
	var open int
	err := db.Read(t.Context(), func(s *pgdb.Session) error {
		_, err := s.One([]any{&open}, `SELECT count(DISTINCT a.pid)::int FROM pg_stat_activity a JOIN pg_locks l USING (pid)
			WHERE l.relation='jobhost.payload_piece'::regclass`)
		return err
	})
	if err != nil || open != 0 {
		t.Errorf("%d transactions are open, %v", open, err)
	}
	for i, r := range readers {
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content(uint64(i), size)[10:]) {
			t.Errorf("reader %d: %d bytes, %v", i, len(got), err)
		}
		_ = r.Close()
	}
}
