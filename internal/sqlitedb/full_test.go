package sqlitedb_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/internal/testing/crashvfs"
	"github.com/jobhost/jobhost/internal/testing/smalldisk"
)

// spacious is a change that says what becomes of it on a full disk.
type spacious struct {
	change
	how sqlitedb.OnFull
}

func (s spacious) OnFull() sqlitedb.OnFull { return s.how }

// offer writes a change, and returns where its answer comes.
func offer(db *sqlitedb.DB, how sqlitedb.OnFull, apply func(tx *sqlitedb.Tx) error) <-chan error {
	done := make(chan error, 1)
	db.Write(spacious{change{apply: apply, done: func(err error) { done <- err }}, how})
	return done
}

// await polls until ok.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not happen", what)
		}
	}
}

func wantFull(t *testing.T, err error) {
	t.Helper()
	e, ok := errors.AsType[*jobhost.Error](err)
	if !ok || e.Code != jobhost.CodeUnavailable || e.Field != jobhost.FieldDisk || e.Hint == "" || e.RetryAfter == 0 {
		t.Fatalf("the answer on a full disk is %#v", err)
	}
}

var large = strings.Repeat("x", 1<<20)

// A disk fills up to the last byte. New things are refused, what must be kept
// waits, reading works; with room again all is as before.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := smalldisk.New(t, 32<<20)
	db := setup(t, sqlitedb.Options{Dir: dir})
	put(t, db, 1, "one")
	free := smalldisk.Fill(t, dir)
	wantFull(t, try(db, insert(2, large)))
	wantFull(t, db.Full())
	for i := range 8 { // more than there is room in the reserve
		wantFull(t, try(db, insert(int64(10+i), large)))
	}
	var kept []<-chan error
	for i := range 8 {
		kept = append(kept, offer(db, sqlitedb.Kept, insert(int64(100+i), large)))
	}
	await(t, "keeping back", func() bool {
		select {
		case <-db.Flowing():
			return false
		default:
			return true
		}
	})
	wantFull(t, <-offer(db, sqlitedb.Tried, insert(3, large)))
	if all, err := readTexts(t, db); err != nil || !strings.HasPrefix(all, "one") {
		t.Fatalf("read on a full disk: %.20q, %v", all, err)
	}
	free()
	for _, done := range kept {
		if err := <-done; err != nil {
			t.Fatalf("what was kept: %v", err)
		}
	}
	<-db.Flowing()
	await(t, "the end of the shortage", func() bool { return db.Full() == nil })
	put(t, db, 4, "four")
	if db.Err() != nil {
		t.Fatal(db.Err())
	}
	if got := len(strings.Fields(texts(t, db))); got != 1+8+1 {
		t.Fatalf("%d notes are there", got)
	}
}

// The log has room, and the database has none: it is the checkpoint that meets
// the full disk.
func TestFullAtCheckpoint(t *testing.T) {
	t.Parallel()
	dir := smalldisk.New(t, 32<<20)
	db := setup(t, sqlitedb.Options{Dir: dir, CheckpointPages: 200})
	for i := range 4 {
		put(t, db, int64(i), large) // the log keeps its room
	}
	free := smalldisk.Fill(t, dir)
	// Its room is used up by the rest of what is put, with the reserve's.
	n := 0
	for ; db.Full() == nil && n < 100; n++ {
		_ = try(db, insert(int64(100+n), strings.Repeat("y", 100<<10)))
	}
	wantFull(t, db.Full())
	for range 20 {
		wantFull(t, try(db, insert(1000, large)))
	}
	free()
	await(t, "the end of the shortage", func() bool { return db.Full() == nil })
	put(t, db, 2000, "last")
	if db.Err() != nil {
		t.Fatal(db.Err())
	}
}

// A database is opened on a full disk, with a log that can't be moved into it,
// as after a crash.
func TestOpenOnAFullDisk(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	db := setup(t, sqlitedb.Options{Dir: source, CheckpointPages: 1 << 20})
	for i := range 4 {
		put(t, db, int64(i), large)
	}
	put(t, db, 10, "last")
	for _, with := range []bool{true, false} {
		t.Run(fmt.Sprintf("reserve %v", with), func(t *testing.T) {
			dir := smalldisk.New(t, 16<<20)
			for _, name := range []string{sqlitedb.FileName, sqlitedb.FileName + "-wal", sqlitedb.FileName + "-shm", sqlitedb.FileName + "-witness"} {
				data, err := os.ReadFile(filepath.Join(source, name))
				if err == nil {
					err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if with {
				if err := os.WriteFile(filepath.Join(dir, sqlitedb.ReserveName), make([]byte, 4<<20), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			free := smalldisk.Fill(t, dir)
			db, err := sqlitedb.Open(sqlitedb.Options{Dir: dir, Schemas: []sqlitedb.Schema{notes()}})
			if err != nil {
				t.Fatal(err)
			}
			if all := texts(t, db); len(all) < 4<<20 || !strings.HasSuffix(all, "last") {
				t.Fatalf("%d bytes are there", len(all))
			}
			wantFull(t, db.Full())
			wantFull(t, try(db, insert(11, "new")))
			free()
			await(t, "the end of the shortage", func() bool { return db.Full() == nil })
			put(t, db, 11, "new")
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Changes that wait for room get an error at the end of the process.
func TestCloseOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir := smalldisk.New(t, 16<<20)
	db, err := sqlitedb.Open(sqlitedb.Options{Dir: dir, Schemas: []sqlitedb.Schema{notes()}})
	if err != nil {
		t.Fatal(err)
	}
	put(t, db, 1, "one")
	free := smalldisk.Fill(t, dir)
	kept := offer(db, sqlitedb.Kept, insert(2, strings.Repeat(large, 8)))
	await(t, "the shortage", func() bool { return db.Full() != nil })
	if err := db.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	wantFull(t, <-kept)
	free()
	again := setup(t, sqlitedb.Options{Dir: dir})
	if got := texts(t, again); got != "one" {
		t.Fatalf("there is %q", got)
	}
}

// A schema needs room; without it the old one stays as it is.
func TestMigrateOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir := smalldisk.New(t, 16<<20)
	db, err := sqlitedb.Open(sqlitedb.Options{Dir: dir, Schemas: []sqlitedb.Schema{notes()}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		put(t, db, int64(i), large)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	newer := notes()
	newer.Steps = append(newer.Steps, "CREATE TABLE copy AS SELECT id+100 AS id, text FROM note")
	free := smalldisk.Fill(t, dir)
	_, err = sqlitedb.Open(sqlitedb.Options{Dir: dir, Schemas: []sqlitedb.Schema{newer}})
	if jobhost.CodeOf(err) != jobhost.CodeUnavailable || !strings.Contains(err.Error(), "disk is full") || jobhost.HintOf(err) == "" {
		t.Fatalf("migrate without room: %v", err)
	}
	old, err := sqlitedb.Open(sqlitedb.Options{Dir: dir, Schemas: []sqlitedb.Schema{notes()}})
	if err != nil {
		t.Fatalf("the version before does not open it any more: %v", err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	free()
}

// A log that is not synced commit by commit is synced before it is moved. If that
// finds no room, it is unknown what of it is on the disk.
func TestRelaxedLogThatCannotBeSynced(t *testing.T) {
	t.Parallel()
	for _, relaxed := range []bool{false, true} {
		t.Run(fmt.Sprint(relaxed), func(t *testing.T) {
			t.Parallel()
			disk := crashvfs.New(t)
			db := setup(t, sqlitedb.Options{Dir: t.TempDir(), Disk: disk, Relaxed: relaxed, CheckpointPages: 8})
			disk.Set(crashvfs.Faults{FullSync: 1})
			for i := int64(0); db.Full() == nil && db.Err() == nil; i++ {
				_ = try(db, insert(i, strings.Repeat("x", 8<<10)))
			}
			disk.Set(crashvfs.Faults{})
			if stopped := db.Err() != nil; stopped != relaxed {
				t.Errorf("the store has stopped: %v (%v)", stopped, db.Err())
			}
		})
	}
}

// hammered is a change that counts its answers.
type hammered struct {
	spacious
	answers atomic.Int64
	err     error
}

func (h *hammered) Done(err error) {
	h.err = err
	h.answers.Add(1)
}

// Many write while a disk is full again and again. Each change is answered once;
// what is kept is made, and what is made is there.
func TestHammerFullDisk(t *testing.T) {
	t.Parallel()
	disk := crashvfs.New(t)
	db, err := sqlitedb.Open(sqlitedb.Options{Dir: t.TempDir(), Disk: disk, Schemas: []sqlitedb.Schema{notes()}, CheckpointPages: 20})
	if err != nil {
		t.Fatal(err)
	}
	const writers, each = 8, 60
	all := make([][]*hammered, writers)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				h := &hammered{spacious: spacious{
					change{apply: insert(int64(w*each+i), "x")}, sqlitedb.OnFull(i % 3),
				}}
				all[w] = append(all[w], h)
				db.Write(h)
				if i%10 == 0 {
					disk.Set(crashvfs.Faults{}) // the others, which would make room, may be waiting too
					<-db.Flowing()
					_ = db.Full()
				}
				if w == 0 {
					disk.Set(crashvfs.Faults{FullWrite: i%4 + 1})
				} else if i%2 == 0 {
					disk.Set(crashvfs.Faults{})
				}
			}
			disk.Set(crashvfs.Faults{})
		})
	}
	wg.Wait()
	await(t, "the end of the shortage", func() bool { return db.Full() == nil })
	<-db.Flowing()
	made := 0
	put(t, db, writers*each, "last")
	for _, list := range all {
		for _, h := range list {
			if n := h.answers.Load(); n != 1 {
				t.Fatalf("a change was answered %d times", n)
			}
			if h.err == nil {
				made++
			} else if h.how == sqlitedb.Kept {
				t.Fatalf("a change that was to be kept: %v", h.err)
			}
		}
	}
	if got := len(strings.Fields(texts(t, db))); got != made+1 {
		t.Errorf("%d changes were made, and %d are there", made+1, got)
	}
	closeDB(t, db)
}
