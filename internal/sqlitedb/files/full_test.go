package files_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jobhost/jobhost/internal/sqlitedb/files"
	"github.com/jobhost/jobhost/internal/testing/smalldisk"
	"github.com/ncruces/go-sqlite3"
)

const (
	setUp = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0; CREATE TABLE a(x)"
	// Pages of 4096 bytes: the index of the log grows at its 4063rd frame.
	fillUp = "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i<%d) INSERT INTO a SELECT zeroblob(4000) FROM n"
)

// On a disk that is really full, at each place where SQLite writes, what comes of it
// says so. What the library says by itself is noted beside it: should an update
// change that, this is where it shows.
func TestAFullDiskIsKnownWhereverItIsMet(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		prepare string // SQL while there is room
		room    func(t *testing.T, path string)
		sql     string // meets the full disk
		plain   error  // the library's, without files
		index   bool   // what fails is the index of the log, which no VFS sees
	}{
		{name: "log", sql: "INSERT INTO a VALUES(zeroblob(100000))", plain: sqlite3.IOERR_WRITE},
		{name: "spilled before the commit", prepare: "PRAGMA cache_size=10", sql: fmt.Sprintf(fillUp, 500), plain: sqlite3.IOERR_WRITE},
		{name: "checkpoint", prepare: fmt.Sprintf(fillUp, 500), sql: "PRAGMA wal_checkpoint(PASSIVE)", plain: sqlite3.IOERR_WRITE},
		{name: "truncating checkpoint", prepare: fmt.Sprintf(fillUp, 500), sql: "PRAGMA wal_checkpoint(TRUNCATE)", plain: sqlite3.IOERR_WRITE},
		{name: "index", room: func(t *testing.T, path string) { // the log has room for it all
			data, err := os.ReadFile(path + "-wal")
			if err == nil {
				err = os.WriteFile(path+"-wal", append(data, make([]byte, 24<<20-len(data))...), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, sql: fmt.Sprintf(fillUp, 5000), plain: sqlite3.IOERR_SHMSIZE, index: true},
		{name: "rollback journal", prepare: fmt.Sprintf(fillUp, 50) + "; PRAGMA journal_mode=DELETE", sql: "UPDATE a SET x=zeroblob(4001)", plain: sqlite3.IOERR_WRITE},
		{name: "copy", prepare: fmt.Sprintf(fillUp, 50), sql: "VACUUM INTO '%s.copy'", plain: sqlite3.IOERR_WRITE},
	} {
		for _, name := range []string{"os", files.Name} {
			t.Run(tt.name+" on "+name, func(t *testing.T) {
				t.Parallel()
				files.RegisterSystem()
				dir := smalldisk.New(t, 40<<20)
				path := filepath.Join(dir, "a.db")
				uri := "file:" + path
				if name != "os" {
					uri += "?vfs=" + name
				}
				c := open(t, uri, sqlite3.OPEN_READWRITE|sqlite3.OPEN_CREATE)
				if err := errors.Join(c.Exec(setUp), c.Exec(tt.prepare)); err != nil {
					t.Fatal(err)
				}
				if tt.room != nil {
					tt.room(t, path)
				}
				free := smalldisk.Fill(t, dir)
				sql := tt.sql
				if strings.Contains(sql, "%s") {
					sql = fmt.Sprintf(sql, path)
				}
				err := c.Exec(sql)
				switch {
				case err == nil:
					t.Fatal("the disk was not met")
				case name == "os" || tt.index:
					if !errors.Is(err, tt.plain) || files.IsFull(err) {
						t.Errorf("the library says %v (%v), expected %v", err, extended(err), tt.plain)
					}
				case !errors.Is(err, sqlite3.FULL):
					t.Errorf("SQLite says %v (%v)", err, extended(err))
				}
				if fault := files.TakeFault(c); name != "os" && !tt.index && tt.name != "copy" && !files.IsFull(fault) {
					t.Errorf("the fault is %v", fault)
				}
				if !c.GetAutocommit() {
					t.Error("the transaction is still open")
				}
				free()
				if err := c.Exec(sql); err != nil && tt.name != "copy" { // whose beginning is there
					t.Errorf("with room: %v", err)
				}
				check(t, c)
			})
		}
	}
}

func extended(err error) sqlite3.ExtendedErrorCode {
	code, _ := errors.AsType[sqlite3.ExtendedErrorCode](err)
	return code
}

// check looks at the whole database.
func check(t *testing.T, c *sqlite3.Conn) {
	t.Helper()
	s, _, err := c.Prepare("PRAGMA integrity_check")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() // its error is that of Step
	for s.Step() {
		if text := s.ColumnText(0); text != "ok" {
			t.Errorf("integrity check: %s", text)
		}
	}
	if s.Err() != nil {
		t.Error(s.Err())
	}
}

// No page of the index of the log, which is mapped into memory, is without room on
// the disk: touching it would end the process.
func TestTheIndexHasItsRoom(t *testing.T) {
	t.Parallel()
	files.RegisterSystem()
	path := filepath.Join(smalldisk.New(t, 40<<20), "a.db")
	c := open(t, "file:"+path+"?vfs="+files.Name, sqlite3.OPEN_READWRITE|sqlite3.OPEN_CREATE)
	if err := errors.Join(c.Exec(setUp), c.Exec(fmt.Sprintf(fillUp, 5000))); err != nil {
		t.Fatal(err)
	}
	if size, room := sizeAndRoom(t, path+"-shm"); size < 64<<10 || room < size {
		t.Errorf("the index has %d bytes and room for %d", size, room)
	}
}

// sizeAndRoom returns how large a file is, and how much of the disk it has.
func sizeAndRoom(t *testing.T, path string) (size, room int64) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size(), info.Sys().(*syscall.Stat_t).Blocks * 512
}
