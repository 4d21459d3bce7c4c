package sqlitedb

import (
	"io"
	"log/slog"
	"time"

	"github.com/jobhost/jobhost/internal/sqlitedb/sealed"
)

// Options say what to open. The zero value is an empty database in memory.
type Options struct {
	// Dir is the directory of the database, created with mode 0700 if it is
	// missing; empty = in memory, gone at Close.
	Dir string
	// Image is what a database in memory begins as; nil = it is empty.
	Image *Image
	// Relaxed lets commits return before they are synced: a crash of the
	// process loses nothing, power loss may lose the last commits, never the
	// database.
	Relaxed bool
	// Schemas are what the packages that share the database keep in it.
	Schemas []Schema
	// Readers is the number of read-only connections; 0 = 3.
	Readers int
	// Logger gets what no caller is there to receive; nil = nothing is logged.
	Logger *slog.Logger
	// Observer is called after commits, for metrics.
	Observer Observer

	// Disk keeps the files, for tests; the lock file stays in Dir. Nil = the
	// operating system does.
	Disk Disk
	// Restored is given a copy by [Restore], before it gets its place, to change
	// what must not be as in the original; nil = nothing.
	Restored func(Querier) error
	// CheckpointPages is how many pages may be in the WAL before they are
	// written back; 0 = 1,000, SQLite's own default.
	CheckpointPages int
}

// Disk is a place for files other than the operating system's.
type Disk interface {
	// VFS is the name of the registered SQLite VFS that keeps the files.
	VFS() string
	// SyncDir makes the names in a directory durable.
	SyncDir(dir string) error
	// Read opens a file for reading and returns its size; a missing one is empty.
	Read(path string) (io.ReadCloser, int64, error)
	// Remove removes a file; a missing one is fine.
	Remove(path string) error
	// OpenFile opens a file to be read and written, making it if it is missing.
	OpenFile(path string) (sealed.Storage, error)
	// OpenWitness opens the file of a witness, of which less is written than it may become.
	OpenWitness(path string) (sealed.Storage, error)
	// Stamp returns the size of a file and when it was last written; zero = unknown.
	Stamp(path string) (sealed.Stamp, error)
	// Boot is different after each loss of power.
	Boot() [16]byte
}

// Observer has functions to call, each of which may be nil. They are called
// from the writer and must be quick.
type Observer struct {
	// Commit is called after every commit with how many operations it held and how
	// long the transaction took, the sync included.
	Commit func(ops int, took time.Duration)
}
