package sqlitedb_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// shell3 runs the sqlite3 shell on a file, and returns what it prints.
func shell3(t *testing.T, path string, sql ...string) string {
	t.Helper()
	out, err := exec.Command("sqlite3", append([]string{path}, sql...)...).CombinedOutput() //nolint:gosec // the shell, as people use it
	if err != nil {
		t.Fatalf("sqlite3 %q: %v\n%s", sql, err, out)
	}
	return strings.TrimSpace(string(out))
}

// session is a sqlite3 shell that stays open.
type session struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func openSession(t *testing.T, path string) *session {
	t.Helper()
	s := &session{t: t, cmd: exec.Command("sqlite3", path)}
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.cmd.Stderr = s.cmd.Stdout
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.out = bufio.NewScanner(out)
	t.Cleanup(s.kill)
	return s
}

// run runs a statement and returns what it prints.
func (s *session) run(sql string) string {
	s.t.Helper()
	if _, err := fmt.Fprintf(s.in, "%s;\n.print --\n", sql); err != nil {
		s.t.Fatal(err)
	}
	var lines []string
	for s.out.Scan() && s.out.Text() != "--" {
		lines = append(lines, s.out.Text())
	}
	return strings.Join(lines, "\n")
}

// end closes the shell as people do.
func (s *session) end() {
	_ = s.in.Close()
	_ = s.cmd.Wait()
}

func (s *session) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// logged is a logger that keeps its lines.
type logged struct {
	mu  sync.Mutex // protects buf
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// killed returns a directory as a host leaves it that is killed: the files as they are. Times stay, too.
func killed(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	copyStore(t, dir, to)
	return to
}

func copyStore(t *testing.T, dir, to string) {
	t.Helper()
	for _, suffix := range []string{"", "-wal", "-witness"} {
		from := filepath.Join(dir, sqlitedb.FileName+suffix)
		data, err := os.ReadFile(from)
		if os.IsNotExist(err) {
			continue
		}
		info, errStat := os.Stat(from)
		if err != nil || errStat != nil {
			t.Fatal(err, errStat)
		}
		name := filepath.Join(to, sqlitedb.FileName+suffix)
		write(t, name, string(data))
		if err := os.Chtimes(name, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
}

// reopen opens a directory and returns its notes.
func reopen(t *testing.T, dir string, log *slog.Logger) (string, error) {
	t.Helper()
	db, err := sqlitedb.Open(sqlitedb.Options{Dir: dir, Schemas: []sqlitedb.Schema{notes()}, Logger: log})
	if err != nil {
		return "", err
	}
	got, err := readTexts(t, db)
	if errClose := db.Close(); err == nil {
		err = errClose
	}
	return got, err
}

// FINDINGS L1: a program that opens the database after a crash, as the last one that has it open, moves the
// log into it, without seals. All is there afterwards, and the host logs it once.
func TestStrangersAfterACrash(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := setup(t, sqlitedb.Options{Dir: dir, CheckpointPages: 10})
	for i := range int64(60) {
		put(t, db, i+1, fmt.Sprintf("note%02d-%s", i, strings.Repeat("x", 300)))
	}
	want := texts(t, db)
	for _, tt := range []struct {
		name string
		sql  []string
	}{
		{"a query", []string{"SELECT count(*) FROM note"}},
		{"a dump", []string{".dump"}},
		{"a passive checkpoint", []string{"PRAGMA wal_checkpoint(PASSIVE)"}},
		{"a full checkpoint", []string{"PRAGMA wal_checkpoint(FULL)"}},
		{"a restart of the log", []string{"PRAGMA wal_checkpoint(RESTART)"}},
		{"a truncation of the log", []string{"PRAGMA wal_checkpoint(TRUNCATE)"}},
		{"a backup", []string{".backup " + filepath.Join(t.TempDir(), "copy.db")}},
		{"an integrity check", []string{"PRAGMA integrity_check"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir, log := killed(t, dir), &logged{}
			path := filepath.Join(dir, sqlitedb.FileName)
			shell3(t, path, tt.sql...)
			if _, err := os.Stat(path + "-wal"); err == nil {
				t.Fatal("the shell has left the log")
			}
			for life := range 3 {
				got, err := reopen(t, dir, log.logger())
				if err != nil || got != want {
					t.Fatalf("life %d: %v, %d bytes of %d", life, err, len(got), len(want))
				}
			}
			if n := strings.Count(log.String(), "another program"); n != 1 {
				t.Errorf("told %d times:\n%s", n, log)
			}
			if err := sqlitedb.Backup(t.Context(), dir, t.TempDir()); err != nil {
				t.Errorf("backup: %v", err)
			}
		})
	}
}

// A reader that may write nothing leaves everything as it is.
func TestReadersThatWriteNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := setup(t, sqlitedb.Options{Dir: dir})
	put(t, db, 1, "one")
	for _, mode := range []string{"mode=ro", "immutable=1", "mode=ro&immutable=1"} {
		dir := killed(t, dir)
		shell3(t, "file:"+filepath.Join(dir, sqlitedb.FileName)+"?"+mode, "SELECT count(*) FROM sqlite_schema")
		if got, err := reopen(t, dir, nil); err != nil || got != "one" {
			t.Errorf("%s: %q, %v", mode, got, err)
		}
	}
}

// Checkpoints of others while the host runs: what they move is compared with what
// was noted, and sealed when the log is restarted; nothing is lost if the host is killed between.
func TestStrangersWhileTheHostRuns(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"PASSIVE", "FULL", "RESTART", "TRUNCATE"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			dir, log := t.TempDir(), &logged{}
			path := filepath.Join(dir, sqlitedb.FileName)
			db := setup(t, sqlitedb.Options{Dir: dir, CheckpointPages: 40, Logger: log.logger()})
			for i := range int64(150) {
				put(t, db, i+1, fmt.Sprintf("note%03d-%s", i, strings.Repeat("x", 500)))
				if i%7 == 0 {
					shell3(t, path, "PRAGMA wal_checkpoint("+mode+")")
				}
				if i%10 != 0 {
					continue
				}
				want := texts(t, db)
				after := killed(t, dir)
				if i%20 == 0 {
					shell3(t, filepath.Join(after, sqlitedb.FileName), "SELECT count(*) FROM note")
				}
				if got, err := reopen(t, after, nil); err != nil || got != want {
					t.Fatalf("killed after %d: %v, %d bytes of %d", i, err, len(got), len(want))
				}
			}
			want := texts(t, db)
			closeDB(t, db)
			if n := strings.Count(log.String(), "another program"); n != 1 {
				t.Errorf("told %d times:\n%s", n, log)
			}
			log = &logged{}
			if got, err := reopen(t, dir, log.logger()); err != nil || got != want {
				t.Fatalf("%v, %d bytes of %d", err, len(got), len(want))
			}
			if log.String() != "" {
				t.Errorf("a start after a clean end says:\n%s", log)
			}
			// Every page has its seal.
			if err := sqlitedb.Verify(t.Context(), path, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// The way of Litestream: a read transaction that stays, so that the log isn't restarted
// by the host, and passive checkpoints of its own.
func TestReplicationByAnother(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, sqlitedb.FileName)
	db := setup(t, sqlitedb.Options{Dir: dir, CheckpointPages: 20})
	put(t, db, 1, "first")
	reader := openSession(t, path)
	for i := range int64(100) {
		if i%10 == 0 {
			reader.run("ROLLBACK; PRAGMA wal_checkpoint(PASSIVE); BEGIN; SELECT count(*) FROM sqlite_schema")
		}
		put(t, db, i+2, strings.Repeat("x", 700))
	}
	want := texts(t, db)
	reader.kill() // with its transaction open
	after := killed(t, dir)
	shell3(t, filepath.Join(after, sqlitedb.FileName), "SELECT count(*) FROM note")
	if got, err := reopen(t, after, nil); err != nil || got != want {
		t.Fatalf("%v, %d bytes of %d", err, len(got), len(want))
	}
	closeDB(t, db)
	if got, err := reopen(t, dir, nil); err != nil || got != want {
		t.Fatalf("%v, %d bytes of %d", err, len(got), len(want))
	}
}

// What others write while the host runs is part of the database like all else.
func TestAnotherWritesWhileTheHostRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, sqlitedb.FileName)
	db := setup(t, sqlitedb.Options{Dir: dir, CheckpointPages: 30})
	for i := range int64(60) {
		put(t, db, i+1, strings.Repeat("x", 500))
		shell3(t, path, fmt.Sprintf("PRAGMA wal_autocheckpoint=5; UPDATE note SET text='changed%d' WHERE id=%d", i, i/2+1))
	}
	want := texts(t, db)
	if after := killed(t, dir); true {
		if got, err := reopen(t, after, nil); err != nil || got != want {
			t.Fatalf("killed: %v, %d bytes of %d", err, len(got), len(want))
		}
	}
	closeDB(t, db)
	if got, err := reopen(t, dir, nil); err != nil || got != want {
		t.Fatalf("%v, %d bytes of %d", err, len(got), len(want))
	}
}

// A lock that another program holds is no damage: the host says who has it, and goes on.
func TestLocksOfOthers(t *testing.T) {
	t.Parallel()
	dir, log := t.TempDir(), &logged{}
	path := filepath.Join(dir, sqlitedb.FileName)
	db, err := sqlitedb.Open(sqlitedb.Options{Dir: dir, Schemas: []sqlitedb.Schema{notes()}, Logger: log.logger()})
	if err != nil {
		t.Fatal(err)
	}
	put(t, db, 1, "one")
	holder := openSession(t, path)
	who := fmt.Sprintf("process %d (sqlite3)", holder.cmd.Process.Pid)
	holder.run("BEGIN EXCLUSIVE")
	err = try(db, insert(2, "two"))
	if jobhost.CodeOf(err) != jobhost.CodeUnavailable || !strings.Contains(err.Error(), who) || !strings.Contains(log.String(), who) {
		t.Errorf("want %s: %v\n%s", who, err, log)
	}
	holder.run("COMMIT")
	put(t, db, 2, "two")
	closeDB(t, db)
	holder.run("PRAGMA locking_mode=EXCLUSIVE")
	holder.run("BEGIN IMMEDIATE")
	holder.run("SELECT count(*) FROM note")
	if _, err = reopen(t, dir, nil); jobhost.CodeOf(err) != jobhost.CodeUnavailable || !strings.Contains(err.Error(), who) || strings.Contains(err.Error(), "damaged") {
		t.Errorf("want %s: %v", who, err)
	}
	holder.kill()
	if got, err := reopen(t, dir, nil); err != nil || got != "one two" {
		t.Errorf("afterwards: %q, %v", got, err)
	}
}

// A reader that is there while the host starts, and stays, keeps nothing from working.
func TestReaderWhileTheHostStarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := setup(t, sqlitedb.Options{Dir: dir})
	for i := range int64(20) {
		put(t, db, i+1, "note")
	}
	after := killed(t, dir)
	reader := openSession(t, filepath.Join(after, sqlitedb.FileName))
	reader.run("BEGIN; SELECT count(*) FROM note")
	again, err := sqlitedb.Open(sqlitedb.Options{Dir: after, Schemas: []sqlitedb.Schema{notes()}, CheckpointPages: 10})
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(20) {
		put(t, again, i+100, "more")
	}
	if last := killed(t, after); true {
		if got, err := reopen(t, last, nil); err != nil || strings.Count(got, "o") != 40 {
			t.Errorf("killed: %q, %v", got, err)
		}
	}
	reader.end()
	closeDB(t, again)
	if got, err := reopen(t, after, nil); err != nil || strings.Count(got, "o") != 40 {
		t.Errorf("%q, %v", got, err)
	}
}

// What is refused leaves a copy of the log.
func TestEvidenceIsKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := setup(t, sqlitedb.Options{Dir: dir})
	for i := range int64(20) {
		put(t, db, i+1, "note")
	}
	after := killed(t, dir)
	log := filepath.Join(after, sqlitedb.FileName+"-wal")
	flip(t, log, 20000, 3)
	damaged, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := reopen(t, after, nil); err == nil || !strings.Contains(err.Error(), "-wal.damaged-") {
			t.Fatal(err)
		}
	}
	kept, err := filepath.Glob(log + ".damaged-*")
	if err != nil || len(kept) != 1 {
		t.Fatalf("%v, %v", kept, err)
	}
	if b, err := os.ReadFile(kept[0]); err != nil || !bytes.Equal(b, damaged) {
		t.Errorf("the copy is another one, %v", err)
	}
}

// Readers meet the writer, and another program's checkpoints.
func TestReadersAmongStrangers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, sqlitedb.FileName)
	db := setup(t, sqlitedb.Options{Dir: dir, CheckpointPages: 25})
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for last := 0; ; {
				select {
				case <-stop:
					return
				default:
				}
				got, err := readTexts(t, db)
				if n := strings.Count(got, "note"); err != nil || n < last {
					t.Errorf("%d notes after %d, %v", n, last, err)
					return
				}
				last = strings.Count(got, "note")
			}
		})
	}
	for i := range int64(100) {
		put(t, db, i+1, "note"+strings.Repeat("x", 400))
		if i%5 == 0 {
			shell3(t, path, "PRAGMA wal_checkpoint(PASSIVE); SELECT count(*) FROM note")
		}
	}
	close(stop)
	all.Wait()
}
