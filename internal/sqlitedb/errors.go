package sqlitedb

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/sqlitedb/files"
	"github.com/ncruces/go-sqlite3"
)

const hintFull = "free space on the disk, or raise the quota; writes are tried again by themselves"

const hintFullStart = "free space on the disk, or raise the quota, and start again"

// isFull reports whether there was no room. The VFS gives such errors the code
// that says so: see [files.File].
func isFull(err error) bool {
	return files.IsFull(err) && !isDamage(err) && !errors.Is(err, errRollback)
}

const (
	hintDamage = "check the disk, then restore a backup: jobhost restore DIR --replace --take-over. " + hintRepair
	hintRepair = "To get out of it what can be read: jobhost repair"
)

// isDamage reports whether what was read is not what was written: a page whose
// checksum is wrong, or that makes no sense.
func isDamage(err error) bool {
	return errors.Is(err, sqlite3.IOERR_DATA) || errors.Is(err, sqlite3.CORRUPT)
}

// isFatal reports whether the error leaves open what is durable, so that
// nothing may be written any more.
func isFatal(err error) bool {
	if isFull(err) {
		return false
	}
	return errors.Is(err, sqlite3.IOERR) || errors.Is(err, sqlite3.CORRUPT) ||
		errors.Is(err, sqlite3.NOTADB) || errors.Is(err, errRollback)
}

// isShared reports whether the error struck the transaction as a whole rather
// than the change that met it first.
func isShared(err error) bool {
	return isFull(err) || isFatal(err) || errors.Is(err, sqlite3.BUSY) || errors.Is(err, sqlite3.READONLY)
}

// explainWrite turns what stopped a change into an error with a code.
func explainWrite(err error) error {
	if jobhost.CodeOf(err) == jobhost.CodeDamaged {
		return err
	}
	e := &jobhost.Error{Code: jobhost.CodeUnavailable, Cause: err}
	switch {
	case isFull(err):
		e.Message, e.Hint = "the disk is full", hintFull
		e.Field, e.RetryAfter = jobhost.FieldDisk, 5*time.Second
	case isDamage(err):
		e.Message = "the database is damaged"
		e.Hint = hintDamage
	case isFatal(err):
		e.Message = "the store has stopped after an I/O error"
		e.Hint = "check the disk and the system's log, then start jobhost again; nothing that was acknowledged is lost"
	case errors.Is(err, sqlite3.BUSY):
		e.Message = "another program holds the database"
		e.Hint = "end the transaction that is open in it, in a sqlite3 shell for instance"
	case errors.Is(err, sqlite3.READONLY):
		e.Message = "the database is read-only"
		e.Hint = "check the permissions of the files and whether the disk is mounted read-only"
	default:
		e.Code, e.Message = jobhost.CodeInternal, "write to the store"
	}
	return e
}

// explainRead turns damage that a read has met into an error with a code.
func explainRead(err error) error {
	if jobhost.CodeOf(err) == jobhost.CodeDamaged {
		return err
	}
	return &jobhost.Error{Code: jobhost.CodeDamaged, Message: "the database is damaged", Hint: hintDamage, Cause: err}
}

// explainOpen turns SQLite's refusal to open a file into an error for people.
func explainOpen(path string, err error) error {
	e := &jobhost.Error{Code: jobhost.CodeUnavailable, Message: fmt.Sprintf("%s cannot be opened", path), Cause: err}
	switch {
	case isFull(err):
		e.Message, e.Hint = fmt.Sprintf("%s cannot be opened: the disk is full", path), hintFullStart
	case errors.Is(err, sqlite3.NOTADB):
		return errForeign(path, "it is not an SQLite database")
	case isDamage(err):
		e.Message = fmt.Sprintf("%s is damaged", path)
		e.Hint = hintDamage
	case errors.Is(err, sqlite3.READONLY), errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EROFS):
		e.Code = jobhost.CodeDenied
		e.Message = fmt.Sprintf("%s cannot be written", path)
		e.Hint = "give the user that runs jobhost write access to the directory and the files in it, or choose another one"
	case errors.Is(err, sqlite3.BUSY):
		e.Message = fmt.Sprintf("%s is locked by %s", path, lockHolder(path))
		e.Hint = "nothing is damaged: end that program, or its transaction, and start jobhost again"
	}
	return e
}

func errForeign(path, why string) error {
	return &jobhost.Error{
		Code:    jobhost.CodeInvalid,
		Message: fmt.Sprintf("%s was not made by jobhost: %s", path, why),
		Hint:    "name another directory, or move the file away",
	}
}
