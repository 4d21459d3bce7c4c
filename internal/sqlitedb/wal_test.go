package sqlitedb_test

import (
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/internal/testing/crashvfs"
	"github.com/ncruces/go-sqlite3"
)

// pieces is a disk that notes how much of a file is read at once.
type pieces struct {
	*crashvfs.Disk
	most *int
}

type piecewise struct {
	io.ReadCloser
	most *int
}

func (d pieces) Read(path string) (io.ReadCloser, int64, error) {
	f, size, err := d.Disk.Read(path)
	return piecewise{f, d.most}, size, err
}

func (p piecewise) Read(b []byte) (int, error) {
	*p.most = max(*p.most, len(b))
	return p.ReadCloser.Read(b)
}

// A log of any length is looked through in pieces.
func TestLogIsReadInPieces(t *testing.T) {
	t.Parallel()
	disk, most := crashvfs.New(t), 0
	opts := sqlitedb.Options{
		Dir: t.TempDir(), Disk: pieces{disk, &most}, Readers: 1, CheckpointPages: 1 << 20, Schemas: []sqlitedb.Schema{notes()},
	}
	db, err := sqlitedb.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(20) {
		put(t, db, i+1, strings.Repeat("x", 200_000))
	}
	log := filepath.Join(opts.Dir, sqlitedb.FileName+"-wal")
	_, size, err := disk.Read(log)
	if err != nil || size < 3<<20 {
		t.Fatalf("the log has %d bytes, %v", size, err)
	}
	disk.Set(crashvfs.Faults{PowerOffAtSync: 1})
	_ = db.Close()
	opts.Disk = pieces{disk.Crash(rand.New(rand.NewPCG(1, 2))), &most}
	db, err = sqlitedb.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(texts(t, db), "x"); n != 20*200_000 {
		t.Errorf("%d bytes are left", n)
	}
	closeDB(t, db)
	if most > 1<<20 {
		t.Errorf("%d bytes were read at once", most)
	}
}

// A log that grew during a long read gives its room back.
func TestLogGivesRoomBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := setup(t, sqlitedb.Options{Dir: dir, CheckpointPages: 8})
	put(t, db, 1, "x")
	c, err := sqlite3.Open(filepath.Join(dir, sqlitedb.FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Exec("BEGIN; SELECT count(*) FROM note"); err != nil {
		t.Fatal(err)
	}
	size := func() int64 {
		info, err := os.Stat(filepath.Join(dir, sqlitedb.FileName+"-wal"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	for i := range int64(10) {
		put(t, db, i+2, strings.Repeat("x", 400_000))
	}
	if size() < 3<<20 {
		t.Fatalf("the log has %d bytes", size())
	}
	if err := c.Exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	for i := range int64(10) {
		put(t, db, i+100, strings.Repeat("x", 100_000))
	}
	if most := int64(2 * 8 * 16 * 4096); size() > most {
		t.Errorf("the log still has %d bytes, more than %d", size(), most)
	}
}
