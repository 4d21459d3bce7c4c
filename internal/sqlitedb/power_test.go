package sqlitedb_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/internal/testing/crashvfs"
)

// After a loss of power the witness may be older than the log. What another program then moves is not
// known page by page; it has to make sense as a whole, and what is known to be acknowledged has to be there.
func TestStrangerAfterALossOfPower(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := setup(t, sqlitedb.Options{Dir: dir})
	for i := range int64(20) {
		put(t, db, i+1, strings.Repeat("x", 900))
	}
	old := killed(t, dir)
	for i := range int64(20) {
		put(t, db, i+21, strings.Repeat("y", 900))
	}
	want := texts(t, db)
	for _, tt := range []struct {
		name  string
		do    func(t *testing.T, dir string)
		opens bool
	}{
		{"the log is whole", func(t *testing.T, dir string) {
			shell3(t, filepath.Join(dir, sqlitedb.FileName), "SELECT count(*) FROM note")
		}, true},
		{"the log is gone", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, sqlitedb.FileName+"-wal")); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"a row is not what was written", func(t *testing.T, dir string) {
			path := filepath.Join(dir, sqlitedb.FileName)
			shell3(t, path, "SELECT count(*) FROM note")
			patch(t, path, func(b []byte) []byte {
				i := bytes.LastIndex(b, []byte("yyyy"))
				return append(append(b[:i:i], damagedText...), b[i+len(damagedText):]...)
			})
		}, false},
		{"a page makes no sense", func(t *testing.T, dir string) {
			path := filepath.Join(dir, sqlitedb.FileName)
			shell3(t, path, "SELECT count(*) FROM note")
			patch(t, path, func(b []byte) []byte { clear(b[len(b)-pageSize : len(b)-20]); return b })
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			after, log := killed(t, dir), &logged{}
			witness, err := os.ReadFile(filepath.Join(old, sqlitedb.FileName+"-witness"))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(after, sqlitedb.FileName+"-witness"), string(reboot(witness)))
			tt.do(t, after)
			got, err := reopen(t, after, log.logger())
			if tt.opens && (err != nil || got != want || strings.Count(log.String(), "after the power was lost") != 1) {
				t.Errorf("%v, %d bytes of %d\n%s", err, len(got), len(want), log)
			}
			if !tt.opens && jobhost.CodeOf(err) != jobhost.CodeUnavailable {
				t.Errorf("opened: %v", err)
			}
		})
	}
}

// After a clean end all is known of the database, also when the machine is started again: another one
// in its place is refused, and its own goes on.
func TestSwappedBeforeAReboot(t *testing.T) {
	t.Parallel()
	store := func(text string) string {
		dir := t.TempDir()
		db := setup(t, sqlitedb.Options{Dir: dir})
		put(t, db, 1, text)
		closeDB(t, db)
		patch(t, filepath.Join(dir, sqlitedb.FileName+"-witness"), reboot)
		return dir
	}
	here, there := store("mine"), store("theirs")
	own := t.TempDir()
	copyStore(t, here, own)
	if got, err := reopen(t, own, nil); err != nil || got != "mine" {
		t.Errorf("its own: %q, %v", got, err)
	}
	other, err := os.ReadFile(filepath.Join(there, sqlitedb.FileName))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(here, sqlitedb.FileName), string(other))
	if got, err := reopen(t, here, nil); jobhost.CodeOf(err) != jobhost.CodeUnavailable {
		t.Errorf("another one: %q, %v", got, err)
	}
}

// reboot makes a witness one of another start of the machine.
func reboot(b []byte) []byte {
	const slot, used = 512, 8 + 8 + 16 + 8 + 8 + 2*24 + 16 + 8 + 1
	for at := 0; at < 2*slot; at += slot {
		b[at+16] ^= 1
		binary.LittleEndian.PutUint32(b[at+used:], crc32.Checksum(b[at:at+used], crc32.MakeTable(crc32.Castagnoli)))
	}
	return b
}

// Commits that were relaxed when the power was lost are lost as was agreed, also for a host that is
// set to strict from then on.
func TestStrictAfterRelaxed(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		dir, disk := t.TempDir(), crashvfs.New(t)
		db, err := sqlitedb.Open(sqlitedb.Options{Dir: dir, Disk: disk, Schemas: []sqlitedb.Schema{notes()}, Relaxed: true})
		if err != nil {
			t.Fatal(err)
		}
		for i := range int64(20) {
			put(t, db, i+1, "x")
		}
		disk.PowerOff()
		_ = db.Close()
		disk = disk.Crash(rand.New(rand.NewPCG(seed, 3)))
		db, err = sqlitedb.Open(sqlitedb.Options{Dir: dir, Disk: disk, Schemas: []sqlitedb.Schema{notes()}})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		closeDB(t, db)
	}
}
