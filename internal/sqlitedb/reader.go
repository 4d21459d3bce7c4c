package sqlitedb

import (
	"context"
	"errors"

	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/ncruces/go-sqlite3"
)

// Reader is a read-only connection within [DB.Read].
type Reader struct{ *conn }

func (db *DB) openReaders() error {
	n := db.opts.Readers
	if n <= 0 {
		n = 3
	}
	db.readers = make(chan *Reader, n)
	for range n {
		c, err := db.connect(sqlite3.OPEN_READONLY)
		if err != nil {
			return explainOpen(db.path, err)
		}
		r := &Reader{conn: c}
		db.pool = append(db.pool, r)
		db.readers <- r
		if err := c.exec("PRAGMA cache_size=-4096; PRAGMA temp_store=MEMORY; PRAGMA query_only=1"); err != nil {
			return explainOpen(db.path, err)
		}
	}
	return nil
}

func (db *DB) closeReaders() error {
	var errs []error
	for _, r := range db.pool {
		errs = append(errs, r.conn.close())
	}
	db.pool = nil
	return errors.Join(errs...)
}

// Read runs fn on a read-only connection, in one snapshot that contains every
// change whose Done was called before. It waits for a free connection, and is
// interrupted when ctx ends. fn must not keep the Reader, nor call Read.
func (db *DB) Read(ctx context.Context, fn func(*Reader) error) error {
	select {
	case <-db.closing:
		return errClosed()
	default:
	}
	var r *Reader
	select {
	case r = <-db.readers:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-db.closing:
		return errClosed()
	}
	defer func() { db.readers <- r }()
	db.gate.RLock()
	defer db.gate.RUnlock()
	err := r.snapshot(ctx, fn)
	if IsDamaged(err) {
		db.log.Error("the database is damaged", logkey.Error, err, logkey.Hint, hintDamage)
		err = explainRead(err)
	}
	return err
}

// snapshot runs fn in a read transaction.
func (r *Reader) snapshot(ctx context.Context, fn func(*Reader) error) (err error) {
	if err := r.Stmt("BEGIN").Exec(); err != nil {
		return err
	}
	r.db.SetInterrupt(ctx)
	defer func() {
		r.db.SetInterrupt(context.Background())
		r.reset()
		if end := r.Stmt("ROLLBACK").Exec(); err == nil {
			err = end
		}
		if errors.Is(err, sqlite3.INTERRUPT) && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	return fn(r)
}
