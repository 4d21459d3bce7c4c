package sqlitedb_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jobhost/jobhost/internal/sqlitedb"
)

func TestRead(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, opts sqlitedb.Options) {
		db := setup(t, opts)
		put(t, db, 1, "one")
		err := db.Read(t.Context(), func(r *sqlitedb.Reader) error {
			return r.Stmt("DELETE FROM note").Exec()
		})
		if err == nil {
			t.Fatal("a reader can write")
		}
		ctx, cancel := context.WithCancel(t.Context())
		err = db.Read(ctx, func(r *sqlitedb.Reader) error {
			s := r.Stmt("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT i FROM n")
			for s.Step() {
				if s.ColInt(0) == 10 {
					cancel()
				}
			}
			return s.Done()
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("an endless read ended with %v", err)
		}
		// A statement that was left half-way, and a panic, cost nothing.
		for i := range 10 {
			func() {
				defer func() { _ = recover() }()
				_ = db.Read(t.Context(), func(r *sqlitedb.Reader) error {
					r.Stmt("SELECT id FROM note").Step()
					if i%2 == 0 {
						panic("boom")
					}
					return nil
				})
			}()
		}
		put(t, db, 2, "two")
		if got := texts(t, db); got != "one two" {
			t.Fatalf("the database holds %q", got)
		}
	})
}

// TestHammer reads and writes at once; each reader must see what was acknowledged, and
// within one read always the same.
func TestHammer(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, opts sqlitedb.Options) {
		opts.CheckpointPages = 5
		db := setup(t, opts)
		var told atomic.Int64
		var wg sync.WaitGroup
		for w := range int64(4) {
			wg.Go(func() {
				for i := range int64(50) {
					if err := try(db, insert(w*1000+i, strings.Repeat("x", 200))); err != nil {
						t.Error(err)
						return
					}
					told.Add(1)
				}
			})
			wg.Go(func() {
				for told.Load() < 200 && !t.Failed() {
					least := told.Load()
					err := db.Read(t.Context(), func(r *sqlitedb.Reader) error {
						first, err := count(r)
						if err != nil {
							return err
						}
						second, err := count(r)
						if err == nil && (first < least || first != second) {
							err = fmt.Errorf("counted %d, then %d of at least %d", first, second, least)
						}
						return err
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	})
}

func count(q sqlitedb.Querier) (int64, error) {
	s := q.Stmt("SELECT count(*) FROM note")
	var n int64
	if s.Step() {
		n = s.ColInt(0)
	}
	return n, s.Done()
}

// TestLogStaysShort hardly ever leaves a moment without a reader: the
// write-ahead log must not grow forever all the same.
func TestLogStaysShort(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := setup(t, sqlitedb.Options{Dir: dir, CheckpointPages: 8, Readers: 4})
	put(t, db, 0, "x")
	end := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
				err := db.Read(t.Context(), func(r *sqlitedb.Reader) error {
					if _, err := count(r); err != nil { // takes the snapshot
						return err
					}
					return r.Stmt(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 2000)
						SELECT max(i) FROM n`).Exec()
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range int64(250) {
		put(t, db, i+1, strings.Repeat("x", 3000))
	}
	close(end)
	wg.Wait()
	info, err := os.Stat(filepath.Join(dir, sqlitedb.FileName+"-wal"))
	if err != nil {
		t.Fatal(err)
	}
	if most := int64(2 * 8 * 16 * 4200); info.Size() > most {
		t.Fatalf("the log has %d bytes, more than %d", info.Size(), most)
	}
}
