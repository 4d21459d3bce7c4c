package sqlitedb_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// A backup under load holds everything that was acknowledged before it began,
// and a whole number of commits.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "deep", "er")
	db := setup(t, sqlitedb.Options{Dir: dir})
	var acked int64
	ctx, cancel := context.WithCancel(t.Context())
	began := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for id := int64(1); ctx.Err() == nil; id++ {
			put(t, db, id, strings.Repeat("x", 500))
			if id == 200 {
				acked = id
				close(began)
			}
		}
	})
	<-began
	err := sqlitedb.Backup(t.Context(), dir, to)
	cancel()
	writer.Wait()
	if err != nil {
		t.Fatal(err)
	}
	restored := t.TempDir()
	if kept, err := sqlitedb.Restore(t.Context(), sqlitedb.Options{Dir: restored, Schemas: []sqlitedb.Schema{notes()}}, to, false); err != nil || kept != "" {
		t.Fatalf("kept %q, %v", kept, err)
	}
	if n := int64(strings.Count(texts(t, setup(t, sqlitedb.Options{Dir: restored})), " ") + 1); n < acked {
		t.Errorf("the backup has %d notes, and %d were acknowledged before it", n, acked)
	}
	if err := sqlitedb.Backup(t.Context(), dir, to); jobhost.CodeOf(err) != jobhost.CodeConflict {
		t.Errorf("a second backup into the same directory: %v", err)
	}
}

func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	good := t.TempDir()
	db := setup(t, sqlitedb.Options{Dir: good})
	put(t, db, 1, "good")
	closeDB(t, db)
	for _, tt := range []struct {
		name    string
		prepare func(t *testing.T, from, dir string)
		code    jobhost.Code
	}{
		{"no backup", func(t *testing.T, from, _ string) {
			if err := os.Remove(filepath.Join(from, sqlitedb.FileName)); err != nil {
				t.Fatal(err)
			}
		}, jobhost.CodeUnavailable},
		{"an empty file", func(t *testing.T, from, _ string) { write(t, filepath.Join(from, sqlitedb.FileName), "") }, jobhost.CodeInvalid},
		{"a text", func(t *testing.T, from, _ string) { write(t, filepath.Join(from, sqlitedb.FileName), "dear diary") }, jobhost.CodeInvalid},
		{"a flipped bit", func(t *testing.T, from, _ string) {
			flip(t, filepath.Join(from, sqlitedb.FileName), 9000, 1)
		}, jobhost.CodeUnavailable},
		{"a newer one", func(t *testing.T, from, _ string) {
			newer := notes()
			newer.Steps = append(newer.Steps, "CREATE TABLE more(x)")
			closeDB(t, setup(t, sqlitedb.Options{Dir: from, Schemas: []sqlitedb.Schema{newer}}))
		}, jobhost.CodeInvalid},
		{"one with a schema that is unknown", func(t *testing.T, from, _ string) {
			more := []sqlitedb.Schema{notes(), {Name: "cluster", Steps: []string{"CREATE TABLE node(x)"}}}
			closeDB(t, setup(t, sqlitedb.Options{Dir: from, Schemas: more}))
		}, jobhost.CodeInvalid},
		{"the files of a store that was killed", func(t *testing.T, from, _ string) {
			write(t, filepath.Join(from, sqlitedb.FileName+"-wal"), "commits")
		}, jobhost.CodeInvalid},
		{"a store that is there", func(t *testing.T, _, dir string) {
			closeDB(t, setup(t, sqlitedb.Options{Dir: dir}))
		}, jobhost.CodeConflict},
		{"a store in use", func(t *testing.T, _, dir string) { setup(t, sqlitedb.Options{Dir: dir}) }, jobhost.CodeConflict},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			from, dir := t.TempDir(), t.TempDir()
			if err := os.CopyFS(from, os.DirFS(good)); err != nil {
				t.Fatal(err)
			}
			tt.prepare(t, from, dir)
			_, err := sqlitedb.Restore(t.Context(), sqlitedb.Options{Dir: dir, Schemas: []sqlitedb.Schema{notes()}}, from, false)
			if jobhost.CodeOf(err) != tt.code {
				t.Errorf("got %v with code %s, want %s", err, jobhost.CodeOf(err), tt.code)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*.part")); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
		})
	}
}

func TestRestoreKeepsWhatItReplaces(t *testing.T) {
	t.Parallel()
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "backup")
	db := setup(t, sqlitedb.Options{Dir: dir})
	put(t, db, 1, "before")
	if err := sqlitedb.Backup(t.Context(), dir, to); err != nil {
		t.Fatal(err)
	}
	put(t, db, 2, "after")
	closeDB(t, db)
	kept, err := sqlitedb.Restore(t.Context(), sqlitedb.Options{Dir: dir, Schemas: []sqlitedb.Schema{notes()}}, to, true)
	if err != nil || kept == "" {
		t.Fatalf("kept %q, %v", kept, err)
	}
	db = setup(t, sqlitedb.Options{Dir: dir})
	if got := texts(t, db); got != "before" {
		t.Errorf("the restored database holds %q", got)
	}
	old := t.TempDir()
	if err := os.Rename(kept, filepath.Join(old, sqlitedb.FileName)); err != nil {
		t.Fatal(err)
	}
	if got := texts(t, setup(t, sqlitedb.Options{Dir: old})); got != "before after" {
		t.Errorf("what was replaced holds %q", got)
	}
}

// What a copy must not have in common with its original is changed before the
// copy gets its place; a change that fails leaves nothing there.
func TestRestoreChangesTheCopy(t *testing.T) {
	t.Parallel()
	from, dir := t.TempDir(), t.TempDir()
	db := setup(t, sqlitedb.Options{Dir: from})
	put(t, db, 1, "original")
	closeDB(t, db)
	opts := sqlitedb.Options{Dir: dir, Schemas: []sqlitedb.Schema{notes()}}
	for _, sql := range []string{"UPDATE nothing SET text=1", "UPDATE note SET text='copy'"} {
		opts.Restored = func(q sqlitedb.Querier) error { return q.Stmt(sql).Exec() }
		if _, err := sqlitedb.Restore(t.Context(), opts, from, false); (err == nil) != strings.Contains(sql, "copy") {
			t.Fatalf("%s: %v", sql, err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*.part*")); len(left) > 0 {
			t.Errorf("%s: %v is left", sql, left)
		}
	}
	if got := texts(t, setup(t, sqlitedb.Options{Dir: dir})); got != "copy" {
		t.Errorf("the copy holds %q", got)
	}
	if got := texts(t, setup(t, sqlitedb.Options{Dir: from})); got != "original" {
		t.Errorf("the backup holds %q", got)
	}
}

func TestFreeSpace(t *testing.T) {
	t.Parallel()
	if n, err := sqlitedb.FreeSpace(t.TempDir()); err != nil || n <= 0 {
		t.Errorf("%d bytes are free, %v", n, err)
	}
	if _, err := sqlitedb.FreeSpace(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("there is free space nowhere")
	}
}

// What an earlier restore has left beside its unfinished copy is not taken for a part of the next one.
func TestRestoreAfterOneThatWasKilled(t *testing.T) {
	t.Parallel()
	dir, backup, to := t.TempDir(), filepath.Join(t.TempDir(), "backup"), t.TempDir()
	db := setup(t, sqlitedb.Options{Dir: dir})
	put(t, db, 1, "before")
	if err := sqlitedb.Backup(t.Context(), dir, backup); err != nil {
		t.Fatal(err)
	}
	put(t, db, 2, "after")
	log, err := os.ReadFile(filepath.Join(killed(t, dir), sqlitedb.FileName+"-wal"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(to, sqlitedb.FileName+".part-wal"), string(log))
	if _, err := sqlitedb.Restore(t.Context(), sqlitedb.Options{Dir: to, Schemas: []sqlitedb.Schema{notes()}}, backup, false); err != nil {
		t.Fatal(err)
	}
	if got, err := reopen(t, to, nil); err != nil || got != "before" {
		t.Errorf("%q, %v", got, err)
	}
}
