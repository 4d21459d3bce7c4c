package sqlitedb_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// TestRepair brings back what can be read of damaged stores, and never a wrong row.
func TestRepair(t *testing.T) {
	t.Parallel()
	s := newStores(t)
	whole := map[string]bool{}
	for line := range strings.Lines(s.wantKilled) {
		whole[line] = true
	}
	for _, tt := range []struct {
		harm
		least float64 // of the rows come back
	}{
		{harm{"nothing", true, func(*testing.T, *stores, string) {}, ""}, 1},
		{harm{"nothing, with a log", false, func(*testing.T, *stores, string) {}, ""}, 1},
		{harm{"leaf of a table", true, inPage(kind(tableLeaf)), ""}, 0.9},
		{harm{"inner page of a table", true, inPage(kind(tableInner)), ""}, 1},
		{harm{"leaf of an index", true, inPage(kind(indexLeaf)), ""}, 0.9},
		{harm{"inner page of an index", true, inPage(kind(indexInner)), ""}, 0.9},
		{harm{"overflow page", true, inPage(kind(nextOverflow)), ""}, 0.9},
		{harm{"pointer map", true, inPage(func(*testing.T, []byte) int { return 2 }), ""}, 1},
		{harm{"list of free pages", true, inPage(func(_ *testing.T, b []byte) int { return freeTrunk(b) }), ""}, 1},
		{harm{"schema cookie", true, bit("", 43), ""}, 1},
		{harm{"zeros in place of a leaf", true, inFile("", func(t *testing.T, b []byte) []byte {
			clear(at(b, pageOf(t, b, tableLeaf)))
			return b
		}), ""}, 0.9},
		{harm{"another page in its place", true, inFile("", func(t *testing.T, b []byte) []byte {
			copy(at(b, pageOf(t, b, nextOverflow)), at(b, pageOf(t, b, nextOverflow)-1))
			return b
		}), ""}, 0.9},
		{harm{"the second half is gone", true, cut("", func(n int) int { return n / 2 / pageSize * pageSize }), ""}, 0.2},
		{harm{"page of a frame in the middle", false, inFrame("middle", 2000), ""}, 0.9},
		{harm{"salt of the first frame", false, inFrame("first", 8), ""}, 0.8},
		{harm{"log header", false, bit("-wal", 16), ""}, 0.8},
		{harm{"the log is gone", false, remove("-wal"), ""}, 0.8},
		{harm{"the shell has written", true, run("UPDATE note SET text='x' WHERE id=5"), ""}, 0.9},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := killed(t, s.killed)
			if tt.stopped {
				dir = killed(t, s.stopped)
			}
			tt.do(t, s, dir)
			before := content(t, dir)
			to := filepath.Join(t.TempDir(), "repaired")
			found, err := sqlitedb.Repair(t.Context(), dir, to, sqlitedb.RepairOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if content(t, dir) != before {
				t.Error("the damaged store was changed")
			}
			db, err := openZoo(to)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			got, err := readZoo(t, db)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for line := range strings.Lines(got) {
				if n++; !whole[line] && tt.stopped {
					t.Errorf("a row that was never there: %.60q", line)
				}
			}
			if share := float64(n) / float64(len(whole)); share < tt.least || tt.least == 1 && got != s.wantKilled {
				t.Errorf("%.3f of the rows came back, want %.3f: %+v", share, tt.least, found)
			}
		})
	}
}

// content returns what is in the files of a store.
func content(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	for _, suffix := range []string{"", "-wal", "-witness"} {
		b, err := os.ReadFile(filepath.Join(dir, sqlitedb.FileName+suffix))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}

func TestRepairRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := setup(t, sqlitedb.Options{Dir: dir})
	put(t, db, 1, "one")
	if _, err := sqlitedb.Repair(t.Context(), dir, t.TempDir(), sqlitedb.RepairOptions{}); jobhost.CodeOf(err) != jobhost.CodeConflict {
		t.Errorf("of a store in use: %v", err)
	}
	closeDB(t, db)
	if _, err := sqlitedb.Repair(t.Context(), dir, dir, sqlitedb.RepairOptions{}); jobhost.CodeOf(err) != jobhost.CodeConflict {
		t.Errorf("into the same directory: %v", err)
	}
	if _, err := sqlitedb.Repair(t.Context(), t.TempDir(), t.TempDir(), sqlitedb.RepairOptions{}); err == nil {
		t.Error("of nothing")
	}
}

// What another program has changed is used if the owner says so.
func TestRepairTrusts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := setup(t, sqlitedb.Options{Dir: dir})
	for i := range int64(20) {
		put(t, db, i+1, "note")
	}
	closeDB(t, db)
	shell3(t, filepath.Join(dir, sqlitedb.FileName), "UPDATE note SET text='changed' WHERE id=1")
	to := t.TempDir()
	found, err := sqlitedb.Repair(t.Context(), dir, to, sqlitedb.RepairOptions{Trust: true})
	if err != nil || len(found.Bad) == 0 {
		t.Fatalf("%+v, %v", found, err)
	}
	if got, err := reopen(t, to, nil); err != nil || strings.Count(got, "note") != 19 || !strings.HasPrefix(got, "changed") {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := sqlitedb.Restore(t.Context(), sqlitedb.Options{Dir: dir}, to, true); err != nil {
		t.Fatal(err)
	}
	if got, err := reopen(t, dir, nil); err != nil || !strings.HasPrefix(got, "changed") {
		t.Errorf("in its place: %q, %v", got, err)
	}
}
