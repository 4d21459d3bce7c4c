package sqlitedb

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/jobhost/jobhost"
	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// checkLog looks for damage in the write-ahead log, which SQLite would pass
// over: it takes the first frame whose checksum is wrong for the end, so that
// one flipped bit makes all later commits vanish without a word. What a loss of
// power leaves is different: each commit was synced before the next one was
// written, so only the last of them can be unfinished. Frames with the marks of
// further commits behind it were acknowledged.
func (db *DB) checkLog() error {
	if db.memory != nil || db.opts.Relaxed {
		return nil // relaxed commits are not synced one by one
	}
	path := db.path + "-wal"
	log, _, err := db.disk.Read(path)
	if err != nil {
		return explainPath(path, err)
	}
	defer func() { _ = log.Close() }() // nothing was written
	good, lost, err := scanLog(bufio.NewReaderSize(log, 1<<18))
	if err != nil {
		return explainPath(path, err)
	}
	if lost <= 1 {
		return nil
	}
	return &jobhost.Error{
		Code:    jobhost.CodeUnavailable,
		Message: fmt.Sprintf("%s is damaged: at least %d commits after byte %d cannot be read", path, lost-1, good),
		Hint:    "check the disk, then restore a backup; to go on without those commits: sqlite3 " + db.path + " 'PRAGMA wal_checkpoint(TRUNCATE)'",
	}
}

// The format of a write-ahead log: https://sqlite.org/fileformat2.html#walformat
// emptyLog begins the log anew. After a loss of power it may end in parts of a
// commit, which the next ones would overwrite from their beginning only: after
// another loss what is left of them would look like a commit that was good once.
func (db *DB) emptyLog(c *conn) error {
	if db.memory != nil {
		return nil
	}
	err := db.truncateLog(c)
	if isFull(err) && db.reserve.release() == nil {
		err = db.truncateLog(c)
	}
	if db.owed = nil; isFull(err) {
		db.owed = err
		return db.cutLog(c) // what is in it stays there until there is room
	}
	if err != nil {
		return explainOpen(db.path, err)
	}
	return nil
}

func (db *DB) truncateLog(c *conn) error {
	if err := c.exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return fmt.Errorf("take over the log: %w", err)
	}
	return nil
}

// cutLog removes what follows the last good frame, which takes no room.
func (db *DB) cutLog(c *conn) error {
	path := db.path + "-wal"
	log, _, err := db.disk.Read(path)
	if err != nil {
		return explainPath(path, err)
	}
	defer func() { _ = log.Close() }() // nothing was written
	good, _, err := scanLog(bufio.NewReaderSize(log, 1<<18))
	if err != nil || good == 0 {
		return err
	}
	pointer, err := c.db.FileControl("main", sqlite3.FCNTL_JOURNAL_POINTER)
	if err != nil {
		return explainOpen(db.path, err)
	}
	file, ok := pointer.(vfs.File)
	if !ok {
		return fmt.Errorf("%s is not open", path)
	}
	if err := file.Truncate(good); err != nil {
		return explainPath(path, err)
	}
	return nil
}

const (
	logHeader   = 32
	frameHeader = 24
	logMagic    = 0x377f0682 // or that plus 1: the checksums are of big-endian words
)

// scanLog returns where the last good frame of a log ends, and how many commits
// seem to follow it. A log may be of gigabytes; one frame is looked at after the
// other.
func scanLog(file io.Reader) (good int64, lost int, err error) {
	log := make([]byte, logHeader)
	if whole, err := readFull(file, log); !whole {
		return 0, 0, err
	}
	magic := binary.BigEndian.Uint32(log)
	size := int(binary.BigEndian.Uint32(log[8:]))
	if magic&^1 != logMagic || size < 512 || size > 65536 {
		return 0, 0, nil // nothing was ever synced in it, or SQLite says so
	}
	sum := checksum{order: binary.LittleEndian}
	if magic&1 != 0 {
		sum.order = binary.BigEndian
	}
	sum.add(log[:24])
	intact := sum.is(log[24:logHeader])
	salts := [8]byte(log[16:24])
	frame := make([]byte, frameHeader+size)
	for end := int64(logHeader + len(frame)); ; end += int64(len(frame)) {
		// Other salts are of the log before this one: what follows was never overwritten.
		if whole, err := readFull(file, frame); !whole || [8]byte(frame[8:16]) != salts {
			return good, lost, err
		}
		sum.add(frame[:8])
		sum.add(frame[frameHeader:])
		if intact = intact && sum.is(frame[16:frameHeader]); intact {
			good = end
		} else if binary.BigEndian.Uint32(frame[4:]) != 0 { // the size of the database, at the end of a commit
			lost++
		}
	}
}

// readFull fills the buffer, and reports whether the file was long enough.
func readFull(file io.Reader, b []byte) (whole bool, err error) {
	_, err = io.ReadFull(file, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return false, nil
	}
	return err == nil, err
}

// checksum is that of a log: it goes on from frame to frame.
type checksum struct {
	order  binary.ByteOrder
	s0, s1 uint32
}

func (c *checksum) add(b []byte) {
	for ; len(b) >= 8; b = b[8:] {
		c.s0 += c.order.Uint32(b) + c.s1
		c.s1 += c.order.Uint32(b[4:]) + c.s0
	}
}

func (c *checksum) is(b []byte) bool {
	return c.s0 == binary.BigEndian.Uint32(b) && c.s1 == binary.BigEndian.Uint32(b[4:])
}
