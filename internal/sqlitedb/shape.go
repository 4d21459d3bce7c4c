package sqlitedb

import (
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/sqlitedb/sealed"
	"github.com/ncruces/go-sqlite3"
)

// A file is shaped before anything is in it:
//
//   - Pages can be given back. SQLite reuses free pages by itself, but a file
//     never gets smaller unless it knows which page points to which
//     (auto_vacuum).
//   - Each page of a file ends with a seal, its number and checksums, written when a page
//     goes from the log into the database and checked whenever one is read from
//     it, so that a flipped bit is an error and never an answer. SQLite's log has
//     its own. Files from before there were seals have checksums of 8 bytes, which
//     package sealed checks, too.
//
// Both together cost the writer 4 to 8 % of a job's work, about 1 µs.
const (
	autoVacuum       = 2 // incremental: when it is asked to
	checksumBytes    = sealed.Bytes
	oldChecksumBytes = 8
)

// shape prepares a new file, or rebuilds one that was made without.
func shape(c *conn, path string, checksums bool) error {
	pages, err := c.number("PRAGMA page_count")
	if err != nil {
		return explainOpen(path, err)
	}
	vacuum, err := c.number("PRAGMA auto_vacuum")
	if err != nil {
		return explainOpen(path, err)
	}
	reserved := 0
	if checksums {
		if reserved, err = c.reserved(); err != nil {
			return explainOpen(path, err)
		}
	}
	if vacuum == autoVacuum && (!checksums || reserved == checksumBytes) {
		return nil
	}
	// This first: the pragma may write the first page.
	if checksums && reserved != checksumBytes {
		if _, err := c.db.FileControl("main", sqlite3.FCNTL_RESERVE_BYTES, checksumBytes); err != nil {
			return explainOpen(path, err)
		}
	}
	if err := c.exec(fmt.Sprintf("PRAGMA auto_vacuum=%d", autoVacuum)); err != nil {
		return explainOpen(path, err)
	}
	if pages == 0 {
		return nil // it takes effect with the first page
	}
	if err := c.exec("VACUUM"); isFull(err) {
		return errNoRoomToRebuild(path, pages, err)
	} else if err != nil {
		return explainOpen(path, fmt.Errorf("rebuild with seals: %w", err))
	}
	return nil
}

// errNoRoomToRebuild is the answer when there is no room for a rebuild, which takes as much as the
// database for a temporary copy, and as much again for the log that brings it back.
func errNoRoomToRebuild(path string, pages int64, err error) error {
	mib := pages*firstPage>>20 + 1
	return &jobhost.Error{
		Code: jobhost.CodeUnavailable, Field: jobhost.FieldDisk, Cause: err,
		Message: fmt.Sprintf("%s cannot be brought up to date: the disk is full", path),
		Hint: fmt.Sprintf("free %d MiB there, and %d MiB for temporary files, and start again, or go on with the jobhost that ran before: the store is as it was",
			mib, mib),
	}
}

// reserved returns how many bytes at the end of each page are not SQLite's.
func (c *conn) reserved() (int, error) {
	v, err := c.db.FileControl("main", sqlite3.FCNTL_RESERVE_BYTES)
	n, _ := v.(int)
	return n, err
}

// Free pages are given back when they are more than one in five of the file,
// and more than 1 MiB, until they are one in twenty: below that they are worth
// more as room for what comes next.
const (
	freeAllowed = 256 // pages
	freeHigh    = 5   // one in so many begins it
	freeLow     = 20  // one in so many ends it
)

// Shrink gives up to so many free pages back to the file system, if there are
// too many of them, and reports whether there is more to give. Each page costs
// about as much as writing one.
func (tx *Tx) Shrink(pages int64) (more bool, err error) {
	total, free, err := tx.pages()
	if err != nil {
		return false, err
	}
	start := int64(freeHigh)
	if tx.shrinking {
		start = freeLow
	}
	if free <= freeAllowed || free*start <= total {
		tx.shrinking = false
		return false, nil
	}
	tx.shrinking = true
	return true, tx.exec(fmt.Sprintf("PRAGMA incremental_vacuum(%d)", pages))
}

// pages returns how many pages the file has and how many of them hold nothing.
func (tx *Tx) pages() (total, free int64, err error) {
	for sql, n := range map[string]*int64{"PRAGMA page_count": &total, "PRAGMA freelist_count": &free} {
		s := tx.Stmt(sql)
		if s.Step() {
			*n = s.ColInt(0)
		}
		if err := s.Done(); err != nil {
			return 0, 0, err
		}
	}
	return total, free, nil
}
