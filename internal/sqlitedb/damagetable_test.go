package sqlitedb_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// What a host does with a damaged store, in the words of docs/operations.md.
const (
	goesOn   = "goes on with everything"
	refuses  = "refuses to start"
	errsRead = "an error when it is read"
	unseen   = "not noticed"
)

// harm is one kind of damage.
type harm struct {
	name    string
	stopped bool // the host was stopped, else it was killed
	do      func(t *testing.T, s *stores, dir string)
	want    string
}

// inFile changes bytes of one of the files.
func inFile(suffix string, change func(t *testing.T, b []byte) []byte) func(*testing.T, *stores, string) {
	return func(t *testing.T, s *stores, dir string) {
		patch(t, s.file(dir, suffix), func(b []byte) []byte { return change(t, b) })
	}
}

// bit flips one bit.
func bit(suffix string, at int) func(*testing.T, *stores, string) {
	return inFile(suffix, func(_ *testing.T, b []byte) []byte { b[at] ^= 4; return b })
}

const frameSize = pageSize + 24

// time0 is a time at which no store was written.
var time0 = time.Unix(1e9, 0)

// inFrame flips a bit in a frame of the log: the first, the one in the middle, or the last.
func inFrame(which string, offset int) func(*testing.T, *stores, string) {
	return inFile("-wal", func(_ *testing.T, b []byte) []byte {
		frames := (len(b) - 32) / frameSize
		i := map[string]int{"first": 0, "middle": frames / 2, "last": frames - 1}[which]
		b[32+i*frameSize+offset] ^= 4
		return b
	})
}

// inPage flips a bit in the middle of a page of a kind.
func inPage(find func(t *testing.T, b []byte) int) func(*testing.T, *stores, string) {
	return inFile("", func(t *testing.T, b []byte) []byte { at(b, find(t, b))[pageSize/2] ^= 4; return b })
}

func kind(k byte) func(*testing.T, []byte) int {
	return func(t *testing.T, b []byte) int { return pageOf(t, b, k) }
}

func remove(suffix string) func(*testing.T, *stores, string) {
	return func(t *testing.T, s *stores, dir string) {
		if err := os.Remove(s.file(dir, suffix)); err != nil {
			t.Fatal(err)
		}
	}
}

// take puts a file of another directory in the place of one.
func take(from func(s *stores) string, suffix string) func(*testing.T, *stores, string) {
	return func(t *testing.T, s *stores, dir string) {
		b, err := os.ReadFile(s.file(from(s), suffix))
		if err != nil {
			t.Fatal(err)
		}
		patch(t, s.file(dir, suffix), func([]byte) []byte { return b })
	}
}

func run(sql ...string) func(*testing.T, *stores, string) {
	return func(t *testing.T, s *stores, dir string) { shell3(t, s.file(dir, ""), sql...) }
}

func cut(suffix string, keep func(size int) int) func(*testing.T, *stores, string) {
	return inFile(suffix, func(_ *testing.T, b []byte) []byte { return b[:keep(len(b))] })
}

func other(s *stores) string   { return s.other }
func earlier(s *stores) string { return s.earlier }

// logHarms is damage of the write-ahead log of a host that was killed.
func logHarms() []harm {
	return []harm{
		{"log header: mark", false, bit("-wal", 3), refuses},
		{"log header: version", false, bit("-wal", 7), refuses},
		{"log header: page size", false, bit("-wal", 10), refuses},
		{"log header: sequence", false, bit("-wal", 15), refuses},
		{"log header: first salt", false, bit("-wal", 16), refuses},
		{"log header: second salt", false, bit("-wal", 20), refuses},
		{"log header: first checksum", false, bit("-wal", 24), refuses},
		{"log header: second checksum", false, bit("-wal", 28), refuses},
		{"log header: zeros", false, inFile("-wal", func(_ *testing.T, b []byte) []byte { clear(b[:32]); return b }), refuses},
		{"log frame: page number", false, inFrame("middle", 3), refuses},
		{"log frame: size of the database", false, inFrame("middle", 7), refuses},
		{"log frame: first salt", false, inFrame("middle", 8), refuses},
		{"log frame: second salt", false, inFrame("middle", 12), refuses},
		{"log frame: first checksum", false, inFrame("middle", 16), refuses},
		{"log frame: second checksum", false, inFrame("middle", 20), refuses},
		{"log frame: the page", false, inFrame("middle", 2000), refuses},
		{"log: salt of the first frame", false, inFrame("first", 8), refuses},
		{"log: page of the first frame", false, inFrame("first", 99), refuses},
		{"log: salt of the last frame", false, inFrame("last", 8), refuses},
		{"log: page of the last frame", false, inFrame("last", 2000), refuses},
		{"log: a frame of zeros", false, inFile("-wal", func(_ *testing.T, b []byte) []byte {
			clear(b[32+10*frameSize : 32+11*frameSize])
			return b
		}), refuses},
		{"log: a hole of 4 KiB", false, inFile("-wal", func(_ *testing.T, b []byte) []byte {
			clear(b[40960 : 40960+4096])
			return b
		}), refuses},
		{"log: all frames are zeros", false, inFile("-wal", func(_ *testing.T, b []byte) []byte { clear(b[32:]); return b }), refuses},
		{"log: two frames are swapped", false, inFile("-wal", func(_ *testing.T, b []byte) []byte {
			x, y := b[32+10*frameSize:][:frameSize], b[32+11*frameSize:][:frameSize]
			was := bytes.Clone(x)
			copy(x, y)
			copy(y, was)
			return b
		}), refuses},
		{"log: cut in the middle", false, cut("-wal", func(n int) int { return n / 2 }), refuses},
		{"log: one byte is missing at the end", false, cut("-wal", func(n int) int { return n - 1 }), refuses},
		{"log: cut to its header", false, cut("-wal", func(int) int { return 32 }), refuses},
		{"log: empty", false, cut("-wal", func(int) int { return 0 }), refuses},
		{"log: deleted", false, remove("-wal"), refuses},
		{"log: of another store", false, take(other, "-wal"), refuses},
		{"log: of the same store, some commits ago", false, take(earlier, "-wal"), refuses},
		{"log: a commit that was not finished follows", false, inFile("-wal", func(_ *testing.T, b []byte) []byte {
			return append(b, b[len(b)-frameSize:][:2000]...)
		}), goesOn},
		{"log: frames of a log before it follow", false, inFile("-wal", func(_ *testing.T, b []byte) []byte {
			old := bytes.Clone(b[32+3*frameSize:][:4*frameSize])
			for i := range 4 {
				old[i*frameSize+8]--
			}
			return append(b, old...)
		}), goesOn},
	}
}

// headerFields are those of the database's first page.
var headerFields = []struct {
	name string
	at   int
}{
	{"mark", 3},
	{"page size", 16},
	{"write version", 18},
	{"read version", 19},
	{"reserved bytes", 20},
	{"largest fraction", 21},
	{"smallest fraction", 22},
	{"leaf fraction", 23},
	{"change counter", 27},
	{"number of pages", 31},
	{"first free page", 35},
	{"number of free pages", 39},
	{"schema cookie", 43},
	{"schema format", 47},
	{"cache size", 51},
	{"largest root", 55},
	{"encoding", 59},
	{"user version", 63},
	{"incremental vacuum", 67},
	{"application id", 71},
	{"reserved", 80},
	{"version valid for", 95},
	{"SQLite version", 99},
}

// pageHarms is damage of the database of a host that was stopped, by a disk: the time of the file stays.
func pageHarms() []harm {
	var all []harm
	for _, f := range headerFields {
		all = append(all, harm{"first page: " + f.name, true, bit("", f.at), refuses})
	}
	return append(all,
		harm{"first page: zeros", true, inFile("", func(_ *testing.T, b []byte) []byte { clear(at(b, 1)); return b }), refuses},
		harm{"page: leaf of a table", true, inPage(kind(tableLeaf)), errsRead},
		harm{"page: inner page of a table", true, inPage(kind(tableInner)), errsRead},
		harm{"page: leaf of an index", true, inPage(kind(indexLeaf)), errsRead},
		harm{"page: inner page of an index", true, inPage(kind(indexInner)), errsRead},
		harm{"page: first overflow page", true, inPage(kind(firstOverflow)), errsRead},
		harm{"page: last overflow page", true, inPage(kind(nextOverflow)), errsRead},
		harm{"page: list of free pages", true, inPage(func(_ *testing.T, b []byte) int { return freeTrunk(b) }), errsRead},
		harm{"page: free page", true, inPage(kind(freePage)), errsRead},
		harm{"page: pointer map", true, inPage(func(*testing.T, []byte) int { return 2 }), errsRead},
		harm{"page: its seal", true, inFile("", func(t *testing.T, b []byte) []byte {
			at(b, pageOf(t, b, tableLeaf))[pageSize-1] ^= 1
			return b
		}), errsRead},
		harm{"page: its number", true, inFile("", func(t *testing.T, b []byte) []byte {
			at(b, pageOf(t, b, tableLeaf))[pageSize-12] ^= 1
			return b
		}), errsRead},
		harm{"page: zeros in place of an overflow page", true, inFile("", func(t *testing.T, b []byte) []byte {
			clear(at(b, pageOf(t, b, nextOverflow)))
			return b
		}), errsRead},
		harm{"page: zeros in place of a leaf", true, inFile("", func(t *testing.T, b []byte) []byte {
			clear(at(b, pageOf(t, b, tableLeaf)))
			return b
		}), errsRead},
		harm{"page: another one in its place", true, inFile("", func(t *testing.T, b []byte) []byte {
			copy(at(b, pageOf(t, b, nextOverflow)), at(b, pageOf(t, b, nextOverflow)-1))
			return b
		}), errsRead},
		harm{"page: half of another one in its place", true, inFile("", func(t *testing.T, b []byte) []byte {
			copy(at(b, pageOf(t, b, nextOverflow))[2048:], at(b, pageOf(t, b, tableLeaf))[2048:])
			return b
		}), errsRead},
		harm{"page: an old version of itself", true, stale, unseen},
		harm{"database: cut by one page", true, cut("", func(n int) int { return n - pageSize }), refuses},
		harm{"database: cut by half a page", true, cut("", func(n int) int { return n - pageSize/2 }), refuses},
		harm{"database: cut in the middle", true, cut("", func(n int) int { return n / 2 / pageSize * pageSize }), refuses},
		harm{"database: empty", true, cut("", func(int) int { return 0 }), refuses},
		harm{"database: deleted", true, remove(""), refuses},
		harm{"database: deleted, the log is there", false, remove(""), refuses},
		harm{"database: of another store", true, take(other, ""), refuses},
		harm{"database: of another store, with our log", false, take(other, ""), refuses},
		harm{"database: an older copy", true, take(earlier, ""), refuses},
		harm{"database: a page of zeros follows", true, inFile("", func(_ *testing.T, b []byte) []byte {
			return append(b, make([]byte, pageSize)...)
		}), goesOn},
	)
}

// stale puts a page of an earlier time into its place.
func stale(t *testing.T, s *stores, dir string) {
	old, err := os.ReadFile(s.file(s.earlier, ""))
	if err != nil {
		t.Fatal(err)
	}
	patch(t, s.file(dir, ""), func(b []byte) []byte {
		for page := 3; page*pageSize <= len(old); page++ {
			now, was := at(b, page), at(old, page)
			if now[0] == tableLeaf && was[0] == tableLeaf && !bytes.Equal(now, was) &&
				binary.BigEndian.Uint16(now[3:]) == binary.BigEndian.Uint16(was[3:]) {
				copy(now, was)
				return b
			}
		}
		t.Fatal("no page has an older version")
		return b
	})
}

// otherHarms is damage of the small files, and what other programs do.
func otherHarms() []harm {
	return []harm{
		{"witness: deleted", false, remove("-witness"), goesOn},
		{"witness: zeros", false, inFile("-witness", func(_ *testing.T, b []byte) []byte { clear(b); return b }), goesOn},
		{"witness: a bit in one of its marks", false, bit("-witness", 20), goesOn},
		{"witness: a bit in an entry", false, bit("-witness", 4096+100), goesOn},
		{"witness: of another store", false, take(other, "-witness"), refuses},
		{"witness: some commits old", false, take(earlier, "-witness"), goesOn},
		{"index of the log: bytes by chance", false, func(t *testing.T, s *stores, dir string) {
			write(t, s.file(dir, "-shm"), strings.Repeat("nonsense", 4096))
		}, goesOn},
		{"a journal that is of nothing", true, func(t *testing.T, s *stores, dir string) {
			write(t, s.file(dir, "-journal"), strings.Repeat("nonsense", 100))
		}, goesOn},
		{"sqlite3 reads after a crash", false, run("SELECT count(*) FROM note"), goesOn},
		{"sqlite3 reads after a clean end", true, run("SELECT count(*) FROM note"), goesOn},
		{"sqlite3 moves the log after a crash", false, run("PRAGMA wal_checkpoint(TRUNCATE)"), goesOn},
		{"sqlite3 is killed while it reads after a crash", false, func(t *testing.T, s *stores, dir string) {
			c := openSession(t, s.file(dir, ""))
			c.run("BEGIN; SELECT count(*) FROM note; PRAGMA wal_checkpoint(PASSIVE)")
			c.kill()
		}, goesOn},
		{"sqlite3 writes after a clean end", true, run("UPDATE note SET text='x' WHERE id=5"), refuses},
		{"sqlite3 writes after a crash", false, run("UPDATE note SET text='x' WHERE id=5"), refuses},
		{"sqlite3 vacuums", true, run("VACUUM"), refuses},
		{"sqlite3 leaves WAL mode", true, run("PRAGMA journal_mode=DELETE"), refuses},
		{"another program flips a bit", true, func(t *testing.T, s *stores, dir string) {
			inPage(kind(tableLeaf))(t, s, dir)
			if err := os.Chtimes(s.file(dir, ""), time0, time0); err != nil {
				t.Fatal(err)
			}
		}, refuses},
		{"sqlite3 reads after a crash, and a page is damaged then", false, func(t *testing.T, s *stores, dir string) {
			shell3(t, s.file(dir, ""), "SELECT count(*) FROM note")
			inPage(kind(tableLeaf))(t, s, dir)
		}, refuses},
	}
}

// TestDamageTable damages stores in all the ways of the table in docs/operations.md.
func TestDamageTable(t *testing.T) {
	t.Parallel()
	s := newStores(t)
	all := slices.Concat(logHarms(), pageHarms(), otherHarms())
	if len(all) < 80 {
		t.Errorf("%d kinds of damage", len(all))
	}
	documented := docRows(t)
	for _, h := range all {
		if documented[h.name] != h.want {
			t.Errorf("docs/operations.md says of %q: %q, want %q", h.name, documented[h.name], h.want)
		}
		delete(documented, h.name)
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			dir, want := killed(t, s.killed), s.wantKilled
			if h.stopped {
				dir, want = killed(t, s.stopped), s.wantStopped
			}
			h.do(t, s, dir)
			if got := outcome(t, dir, want); got != h.want {
				t.Errorf("the host %s, want %s", got, h.want)
			}
		})
	}
	for name := range documented {
		t.Errorf("docs/operations.md has %q, which is not tested", name)
	}
}

// outcome opens a damaged store, reads all of it and copies it.
func outcome(t *testing.T, dir, want string) string {
	t.Helper()
	log := filepath.Join(dir, sqlitedb.FileName+"-wal")
	before, _ := os.ReadFile(log)
	db, err := openZoo(dir)
	if err != nil {
		t.Log(err)
		if c := jobhost.CodeOf(err); c != jobhost.CodeUnavailable || jobhost.HintOf(err) == "" {
			t.Errorf("code %s, hint %q: %v", c, jobhost.HintOf(err), err)
		}
		if after, _ := os.ReadFile(log); !bytes.Equal(before, after) {
			t.Error("the log was changed")
		}
		return refuses
	}
	got, err := readZoo(t, db)
	err = errors.Join(err, db.Close())
	if err == nil {
		err = sqlitedb.Backup(t.Context(), dir, t.TempDir())
	}
	switch {
	case err != nil:
		t.Log(err)
		return errsRead
	case got != want:
		return unseen
	}
	return goesOn
}

// docRows reads the table in docs/operations.md.
func docRows(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "<!-- damage -->")
	table, _, _ = strings.Cut(table, "<!-- end of damage -->")
	rows := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \|$`).FindAllStringSubmatch(table, -1) {
		for name := range strings.SplitSeq(m[1], "; ") {
			rows[name] = strings.TrimSpace(m[2])
		}
	}
	delete(rows, "what is damaged")
	return rows
}

// newStores makes the stores that are damaged.
func newStores(t *testing.T) *stores {
	t.Helper()
	s := &stores{stopped: t.TempDir(), killed: t.TempDir(), other: t.TempDir(), earlier: t.TempDir()}
	must := func(dir string) *sqlitedb.DB {
		db, err := openZoo(dir)
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	text := func(db *sqlitedb.DB) string {
		all, err := readZoo(t, db)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	elsewhere := t.TempDir()
	another := must(elsewhere)
	fillZoo(t, another, 0, 150)
	closeDB(t, another)
	another = must(elsewhere)
	fillZoo(t, another, 150, 200)
	copyStore(t, elsewhere, s.other)
	closeDB(t, another)
	live := t.TempDir()
	db := must(live)
	fillZoo(t, db, 0, 260)
	closeDB(t, db)
	db = must(live)
	fillZoo(t, db, 260, 290)
	copyStore(t, live, s.earlier)
	fillZoo(t, db, 290, 310)
	if err := try(db, func(tx *sqlitedb.Tx) error { return tx.Stmt("DELETE FROM big WHERE id<40").Exec() }); err != nil {
		t.Fatal(err)
	}
	s.wantKilled = text(db)
	copyStore(t, live, s.killed)
	closeDB(t, db)
	s.wantStopped = s.wantKilled
	copyStore(t, live, s.stopped)
	return s
}
