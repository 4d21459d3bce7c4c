// Package sqlitedb opens, locks and writes one SQLite database, so that all
// durable changes of a host go through one commit pipeline.
//
//	Write ─► queue (bounded) ─► writer: one transaction for all that waits ─► notifier: Done in order
//	Read  ─► a pool of read-only connections, each in its own snapshot
//
// A caller hands over a [Change] and is notified when it is durable. The writer
// takes everything that waits, applies it in one transaction and syncs once;
// no timer ever delays a commit. While the notifier calls back, the
// writer is already in the next transaction.
//
// The package starts two goroutines, the writer and the notifier, itself: it
// lies below host/scope, which supervises components of a host, and its
// goroutines have no other end than [DB.Close], which waits for both.
package sqlitedb

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/sqlitedb/sealed"
	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// FileName is the name of the database within its directory; [LockName] is
// that of the file that keeps a second process out.
const (
	FileName = "jobhost.db"
	LockName = "jobhost.lock"
)

// DB is an open database. Its methods may be called from many goroutines.
type DB struct {
	opts Options
	path string // of the database, as SQLite knows it
	vfs  string // "" = the operating system's files
	base string // the VFS below it
	disk Disk
	lock *lockFile // nil in memory
	// reserve is room for when the disk is full; nil in memory and on a Disk.
	reserve *reserve
	index   *os.File // nil = SQLite looks after it alone
	owed    error    // why the log could not be moved into the database by Open; nil = it was
	// witness and notes are of the log; nil in memory.
	witness *sealed.Witness
	notes   *sealed.Notes
	noLog   bool          // it was opened without a log, or with an empty one
	found   sealed.Survey // what another program has left
	memory  *memoryVFS
	log     *slog.Logger

	// gate is held for reading by every Read. The writer takes it to make the
	// WAL start over when readers never leave it a moment; in memory, where
	// there is no WAL, it takes it for each transaction.
	gate    sync.RWMutex
	readers chan *Reader // the idle ones
	pool    []*Reader    // all of them
	writer  *writer

	closing chan struct{} // closed when Close begins
	close   func() error
}

// Open opens the database, creating or migrating it if need be. Errors carry
// a code and, where something can be done, a hint: conflict when another
// process has the directory open, denied when the directory can't be written,
// invalid for a file that is not jobhost's or that a newer version wrote.
func Open(opts Options) (_ *DB, err error) {
	db := &DB{opts: opts, log: opts.Logger, closing: make(chan struct{})}
	if db.log == nil {
		db.log = slog.New(slog.DiscardHandler)
	}
	defer func() {
		if err != nil {
			db.release()
			err = fmt.Errorf("open store: %w", err)
		}
	}()
	if err := db.place(); err != nil {
		return nil, err
	}
	conn, err := db.openWriter()
	if isFull(err) && db.reserve.release() == nil {
		if err = db.watchAnew(); err == nil {
			conn, err = db.openWriter() // with the room that was kept back
		}
	}
	if err != nil {
		return nil, err
	}
	if err := db.openReaders(); err != nil {
		return nil, errors.Join(err, conn.close())
	}
	db.writer = newWriter(db, conn)
	db.writer.openShort()
	db.writer.start()
	db.close = sync.OnceValue(db.shutdown)
	return db, nil
}

// openWriter opens the connection that writes and brings the schema up to date.
func (db *DB) openWriter() (_ *conn, err error) {
	if err := db.clearUnfinished(); err != nil {
		return nil, err
	}
	if err := db.checkLog(); err != nil {
		return nil, err
	}
	if err := db.lookForStrangers(); err != nil {
		return nil, err
	}
	c, err := db.connect(sqlite3.OPEN_READWRITE | sqlite3.OPEN_CREATE)
	if err != nil {
		return nil, explainOpen(db.path, err)
	}
	defer func() {
		if err != nil {
			keepOnClose(c) // what is refused stays as it is
			err = errors.Join(err, c.close())
		}
	}()
	if err := identify(c, db.path); err != nil {
		return nil, err
	}
	if err := refuseNewer(c, db.path, db.opts.Schemas); err != nil {
		return nil, err
	}
	if err := db.judge(c); err != nil {
		return nil, err
	}
	if err := db.preserve(c); err != nil { // which reads all pages
		return nil, err
	}
	if err := shape(c, db.path, db.memory == nil); err != nil {
		return nil, err
	}
	if err := c.exec(db.writerPragmas()); err != nil {
		return nil, explainOpen(db.path, err)
	}
	// A journal whose deletion is not durable could come back, and undo a part of
	// what the log is about to bring into the database.
	if err := db.syncNames(); err != nil {
		return nil, err
	}
	if err := db.takeOver(c); err != nil {
		return nil, err
	}
	if err := db.migrate(c); err != nil {
		return nil, err
	}
	// The log, which the first change has made, must be found again before the
	// first commit is acknowledged.
	if err := db.syncNames(); err != nil {
		return nil, err
	}
	return c, nil
}

// migrate brings the schema up to date. On a full disk that is refused: half of the
// steps would be there, and a host of before could not open it any more.
func (db *DB) migrate(c *conn) error {
	err := migrate(c, db.path, db.opts.Schemas)
	if isFull(err) {
		return &jobhost.Error{
			Code: jobhost.CodeUnavailable, Field: jobhost.FieldDisk, Cause: err,
			Message: fmt.Sprintf("%s cannot be brought up to date: the disk is full", db.path),
			Hint:    "free as much space as the database takes and start again, or go on with the jobhost that ran before",
		}
	}
	return err
}

// syncNames makes the names of the files durable, as they are now. SQLite's VFS in
// Go syncs files only.
func (db *DB) syncNames() error {
	if db.memory != nil {
		return nil
	}
	return db.disk.SyncDir(filepath.Dir(db.path))
}

// writerPragmas sets up the connection that writes. Its page cache of 32 MiB
// holds the inner pages and the busy ends of the indexes of millions of rows.
func (db *DB) writerPragmas() string {
	const common = "PRAGMA foreign_keys=0; PRAGMA temp_store=MEMORY; PRAGMA cache_size=-32768; "
	if db.memory != nil {
		return common + "PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF"
	}
	sync := "FULL"
	if db.opts.Relaxed {
		sync = "NORMAL"
	}
	// A log that grew, during a backup for instance, gives its room back when it starts over.
	limit := cmp.Or(db.opts.CheckpointPages, walSoft) * walHard * 4096
	return common + fmt.Sprintf("PRAGMA journal_mode=WAL; PRAGMA synchronous=%s; PRAGMA journal_size_limit=%d", sync, limit)
}

// Failed is closed when the database has stopped after an I/O error: every
// later write fails, and only reopening it helps. [DB.Err] returns why.
func (db *DB) Failed() <-chan struct{} { return db.writer.failed }

// Err returns the error that stopped the database, or nil.
func (db *DB) Err() error {
	select {
	case <-db.writer.failed:
		return db.writer.failure
	default:
		return nil
	}
}

// Close waits for what is queued, writes everything into the database file and
// frees the directory. Closing twice is fine; the second call returns when the
// first has, with its error.
func (db *DB) Close() error { return db.close() }

func (db *DB) shutdown() error {
	close(db.closing)
	db.writer.stop()
	for range db.pool {
		<-db.readers // waits for the reads under way
	}
	err := errors.Join(db.closeReaders(), db.writer.closeConn())
	db.release()
	if err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// release frees what place took, and the readers when Open failed.
func (db *DB) release() {
	_ = db.closeReaders()
	if db.memory != nil {
		db.memory.unregister()
	} else {
		vfs.Unregister(db.vfs)
	}
	if db.opts.Disk != nil {
		vfs.Unregister(db.base)
	}
	if db.index != nil {
		_ = db.index.Close() // nothing that counts was written
	}
	_ = db.witness.Close() // what is in it is durable, or need not be
	db.lock.release()
}

// connect opens one connection.
func (db *DB) connect(flags sqlite3.OpenFlag) (*conn, error) {
	sealed.RegisterSystem()
	c, err := sqlite3.OpenFlags(db.uri(), flags|sqlite3.OPEN_URI)
	if err != nil {
		return nil, err
	}
	if err := c.BusyTimeout(busyTimeout); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &conn{db: c, stmts: make(map[string]*Stmt)}, nil
}

// busyTimeout is how long a connection waits for a lock. Nothing in this
// process holds one for long; a person with the sqlite3 shell might.
const busyTimeout = 5 * time.Second

// errClosed is the answer after Close.
func errClosed() error {
	return &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "the store is closed"}
}
