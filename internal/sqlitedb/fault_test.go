package sqlitedb

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/ncruces/go-sqlite3"
)

func TestFaultsAreToldApart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name                string
		err                 error
		full, fatal, shared bool
		code                jobhost.Code
	}{
		{"full", sqlite3.FULL, true, false, true, jobhost.CodeUnavailable},
		{"no space, as the VFS hands it on", ioError{syscall.ENOSPC}, true, false, true, jobhost.CodeUnavailable},
		{"quota", ioError{syscall.EDQUOT}, true, false, true, jobhost.CodeUnavailable},
		{"sync", fmt.Errorf("commit: %w", sqlite3.IOERR_FSYNC), false, true, true, jobhost.CodeUnavailable},
		{"device", ioError{syscall.EIO}, false, true, true, jobhost.CodeUnavailable},
		{"damaged", sqlite3.CORRUPT, false, true, true, jobhost.CodeUnavailable},
		{"rollback", fmt.Errorf("%w: %w", errRollback, sqlite3.BUSY), false, true, true, jobhost.CodeUnavailable},
		{"busy", sqlite3.BUSY, false, false, true, jobhost.CodeUnavailable},
		{"constraint", sqlite3.CONSTRAINT_UNIQUE, false, false, false, jobhost.CodeInternal},
		{"own", errors.New("own"), false, false, false, jobhost.CodeInternal},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if isFull(tt.err) != tt.full || isFatal(tt.err) != tt.fatal || isShared(tt.err) != tt.shared {
				t.Fatalf("full %v, fatal %v, shared %v", isFull(tt.err), isFatal(tt.err), isShared(tt.err))
			}
			got := explainWrite(tt.err)
			if jobhost.CodeOf(got) != tt.code || !errors.Is(got, tt.err) {
				t.Fatalf("explained as %v", got)
			}
			if tt.code == jobhost.CodeUnavailable && jobhost.HintOf(got) == "" {
				t.Fatal("there is no hint")
			}
		})
	}
}

// ioError is an I/O error with the system's error in it, as SQLite returns it
// for a write that the VFS failed.
type ioError struct{ errno syscall.Errno }

func (e ioError) Error() string { return "disk I/O error" }
func (e ioError) Unwrap() error { return &fs.PathError{Op: "write", Err: e.errno} }
func (e ioError) Is(err error) bool {
	return err == sqlite3.IOERR || err == sqlite3.IOERR_WRITE
}
