package sqlitedb_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/internal/sqlitedb/sealed"
	"github.com/ncruces/go-sqlite3"
)

// notes is the schema of the tests.
func notes() sqlitedb.Schema {
	return sqlitedb.Schema{Name: "notes", Check: checkNotes, Steps: []string{
		"CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT NOT NULL)",
	}}
}

// damagedText is in notes that are not what was written.
const damagedText = "<!>"

func checkNotes(q sqlitedb.Querier, found func(error)) error {
	s := q.Stmt("SELECT id FROM note WHERE instr(text, ?)").Text(damagedText)
	for s.Step() {
		found(sqlitedb.Damaged("note %d", s.ColInt(0)))
	}
	return s.Done()
}

// setup opens a database with notes and closes it when the test ends.
func setup(t testing.TB, opts sqlitedb.Options) *sqlitedb.DB {
	t.Helper()
	if opts.Schemas == nil {
		opts.Schemas = []sqlitedb.Schema{notes()}
	}
	db, err := sqlitedb.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// both runs a test on a file and in memory.
func both(t *testing.T, test func(t *testing.T, opts sqlitedb.Options)) {
	t.Helper()
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		test(t, sqlitedb.Options{Dir: t.TempDir()})
	})
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, sqlitedb.Options{})
	})
}

// shell runs SQL on a database file as another program would.
func shell(t *testing.T, path, sql string) {
	t.Helper()
	c, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Exec(sql), c.Close()); err != nil {
		t.Fatal(err)
	}
}

// sealedShell runs SQL on a database file as jobhost would.
func sealedShell(t *testing.T, path, sql string) {
	t.Helper()
	sealed.RegisterSystem()
	c, err := sqlite3.OpenFlags("file:"+path+"?vfs="+sealed.Name, sqlite3.OPEN_READWRITE|sqlite3.OPEN_URI)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Exec(sql), c.Close()); err != nil {
		t.Fatal(err)
	}
	// It is what a newer jobhost would leave.
	if err := os.Remove(path + "-witness"); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		prepare func(t *testing.T, dir string)
		code    jobhost.Code
		text    string
	}{
		{"a text file", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, sqlitedb.FileName), "dear diary")
		}, jobhost.CodeInvalid, "was not made by jobhost"},
		{"a database of another program", func(t *testing.T, dir string) {
			shell(t, filepath.Join(dir, sqlitedb.FileName), "CREATE TABLE t(x)")
		}, jobhost.CodeInvalid, "database of another program"},
		{"a marked database of another program", func(t *testing.T, dir string) {
			shell(t, filepath.Join(dir, sqlitedb.FileName), "PRAGMA application_id=7; CREATE TABLE t(x)")
		}, jobhost.CodeInvalid, "database of another program"},
		{"a newer schema", func(t *testing.T, dir string) {
			newer := notes()
			newer.Steps = append(newer.Steps, "CREATE TABLE more(x)")
			closeDB(t, setup(t, sqlitedb.Options{Dir: dir, Schemas: []sqlitedb.Schema{newer}}))
		}, jobhost.CodeInvalid, "newer jobhost: notes version 2, and this one knows 1"},
		{"a schema that is unknown", func(t *testing.T, dir string) {
			more := []sqlitedb.Schema{notes(), {Name: "cluster", Steps: []string{"CREATE TABLE node(x)"}}}
			closeDB(t, setup(t, sqlitedb.Options{Dir: dir, Schemas: more}))
		}, jobhost.CodeInvalid, `newer jobhost: it has a part "cluster"`},
		{"a newer layout", func(t *testing.T, dir string) {
			closeDB(t, setup(t, sqlitedb.Options{Dir: dir}))
			sealedShell(t, filepath.Join(dir, sqlitedb.FileName), "PRAGMA user_version=99")
		}, jobhost.CodeInvalid, "newer jobhost: file layout 99"},
		{"a directory in place of the file", func(t *testing.T, dir string) {
			if err := os.Mkdir(filepath.Join(dir, sqlitedb.FileName), 0o700); err != nil {
				t.Fatal(err)
			}
		}, jobhost.CodeInvalid, "not what a store needs"},
		{"a directory in use", func(t *testing.T, dir string) {
			setup(t, sqlitedb.Options{Dir: dir})
		}, jobhost.CodeConflict, fmt.Sprintf("in use by process %d", os.Getpid())},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			tt.prepare(t, dir)
			_, err := sqlitedb.Open(sqlitedb.Options{Dir: dir, Schemas: []sqlitedb.Schema{notes()}})
			if jobhost.CodeOf(err) != tt.code || jobhost.HintOf(err) == "" {
				t.Fatalf("got %v with code %s and hint %q, want code %s", err, jobhost.CodeOf(err), jobhost.HintOf(err), tt.code)
			}
			if !strings.Contains(err.Error(), tt.text) || !strings.Contains(err.Error(), dir) {
				t.Fatalf("%q does not contain %q and the directory", err, tt.text)
			}
		})
	}
}

func TestOpenBelowAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	for _, dir := range []string{file, filepath.Join(file, "sub")} {
		if _, err := sqlitedb.Open(sqlitedb.Options{Dir: dir}); jobhost.CodeOf(err) != jobhost.CodeInvalid {
			t.Fatalf("%s: %v", dir, err)
		}
	}
}

func TestOpenUnwritable(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil { //nolint:gosec // the mode is the test
		t.Fatal(err)
	}
	_, err := sqlitedb.Open(sqlitedb.Options{Dir: dir})
	if jobhost.CodeOf(err) != jobhost.CodeDenied || jobhost.HintOf(err) == "" {
		t.Fatalf("got %v", err)
	}
}

// TestPrivateFiles opens a directory that was made with too wide a mode.
func TestPrivateFiles(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	dir := filepath.Join(parent, "a", "b with a ? and a %20")
	db := setup(t, sqlitedb.Options{Dir: dir})
	put(t, db, 1, "one")
	closeDB(t, db)
	if err := os.Chmod(filepath.Join(dir, sqlitedb.FileName), 0o644); err != nil { //nolint:gosec // the mode is the test
		t.Fatal(err)
	}
	db = setup(t, sqlitedb.Options{Dir: dir})
	put(t, db, 2, "two")
	err := filepath.WalkDir(parent, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == parent {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := texts(t, db); got != "one two" {
		t.Fatalf("the database holds %q", got)
	}
}

// All files of a new store are for their owner, in a directory that others may enter, too.
func TestNewFilesArePrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // the mode is the test
		t.Fatal(err)
	}
	put(t, setup(t, sqlitedb.Options{Dir: dir}), 1, "secret")
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) < 5 {
		t.Fatalf("%d files, %v", len(entries), err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", e.Name(), info.Mode(), err)
		}
	}
}

// TestStaleLock takes a directory whose holder was killed.
func TestStaleLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	holder := exec.Command(os.Args[0], "-test.run=^TestHolder$", "-test.v") //nolint:gosec // this very program
	holder.Env = append(os.Environ(), "SQLITEDB_HOLD="+dir)
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "holding") {
	}
	_, err = sqlitedb.Open(sqlitedb.Options{Dir: dir})
	if want := fmt.Sprintf("process %d", holder.Process.Pid); jobhost.CodeOf(err) != jobhost.CodeConflict || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want a conflict with %s", err, want)
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait() // killed
	if got := texts(t, setup(t, sqlitedb.Options{Dir: dir})); got != "held" {
		t.Fatalf("the killed process left %q, want what was acknowledged", got)
	}
}

// TestHolder is the process that TestStaleLock kills.
func TestHolder(t *testing.T) {
	dir := os.Getenv("SQLITEDB_HOLD")
	if dir == "" {
		t.Skip("for TestStaleLock")
	}
	db := setup(t, sqlitedb.Options{Dir: dir})
	put(t, db, 1, "held")
	fmt.Println("holding")
	select {}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func closeDB(t testing.TB, db *sqlitedb.DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
