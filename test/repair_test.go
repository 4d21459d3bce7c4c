package test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// leafWith returns where in a database the leaf page of a table is that contains a text.
func leafWith(t *testing.T, data []byte, text string) int {
	t.Helper()
	const pageSize, leaf = 4096, 0x0d
	for at := pageSize; at < len(data); at += pageSize {
		if data[at] == leaf && bytes.Contains(data[at:at+pageSize], []byte(text)) {
			return at
		}
	}
	t.Fatalf("no page has %q", text)
	return 0
}

// change changes a file of the store.
func (s *site) change(suffix string, do func([]byte)) {
	s.t.Helper()
	path := s.database() + suffix
	data, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	do(data)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// A host refuses its damaged store and says what to do; with what repair has recovered
// it starts, serves it, runs the open jobs, and its counters match the rows.
func TestRepairOfADamagedStore(t *testing.T) {
	t.Parallel()
	const ended, open = 300, 5
	s := newSite(t)
	host := s.start()
	for i := range ended {
		spec := jobhost.Spec{ID: fmt.Sprintf("ended-%03d", i), Worker: "echo", Payload: bytes.Repeat([]byte("x"), 200)}
		if _, err := host.Submit(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	awaitMetric(t, s, host, `jobhost_jobs_total{outcome="succeeded",worker="echo"}`, ended)
	host.stop()
	host = s.start()
	if _, err := host.PauseWorker(t.Context(), "echo"); err != nil {
		t.Fatal(err)
	}
	for i := range open {
		if _, err := host.Submit(t.Context(), jobhost.Spec{ID: fmt.Sprintf("open-%d", i), Worker: "echo"}); err != nil {
			t.Fatal(err)
		}
	}
	host.kill()
	s.change("", func(data []byte) { data[leafWith(t, data, "ended-150")+1000] ^= 4 })
	s.change("-wal", func(data []byte) { data[32+24+100] ^= 4 })

	text, code := s.runToEnd()
	if code != 1 || !strings.Contains(text, "jobhost repair") {
		t.Fatalf("exit code %d:\n%s", code, text)
	}
	to := filepath.Join(t.TempDir(), "repaired")
	out, err := s.try("repair", to)
	if err != nil {
		t.Fatalf("repair: %v\n%s", err, out)
	}
	s.command("restore", to, "--replace", "--take-over")

	host = s.start()
	list := func(state jobhost.State) int { // by the counters
		page, err := host.Jobs(t.Context(), jobhost.Filter{Worker: "echo", State: state, Limit: jobhost.MaxPage})
		if err != nil {
			t.Fatal(err)
		}
		for _, job := range page.Jobs {
			if _, err := host.Result(t.Context(), job.ID, 0); state == jobhost.Succeeded && err != nil {
				t.Errorf("%s: %v", job.ID, err)
			}
		}
		return len(page.Jobs)
	}
	if n := list(jobhost.Succeeded); n < ended*3/4 || n >= ended {
		t.Errorf("%d of %d jobs are left:\n%s", n, ended, out)
	}
	if n := list(jobhost.Dead); n != 0 {
		t.Errorf("%d jobs are dead", n)
	}
	if _, err := host.Submit(t.Context(), jobhost.Spec{ID: "after", Worker: "echo"}); err != nil {
		t.Fatal(err)
	}
	awaitState(t, host, "after", jobhost.Succeeded)
}

// statement changes rows of a store without updating their checksums.
type statement struct {
	sql  string
	done chan error
}

func (s *statement) Ops() int                    { return 1 }
func (s *statement) Apply(tx *sqlitedb.Tx) error { return tx.Stmt(s.sql).Exec() }
func (s *statement) Done(err error)              { s.done <- err }

// tamper changes rows while the host is stopped.
func (s *site) tamper(sql string) {
	s.t.Helper()
	db, err := sqlitedb.Open(sqlitedb.Options{Dir: filepath.Dir(s.database())})
	if err != nil {
		s.t.Fatal(err)
	}
	change := &statement{sql, make(chan error, 1)}
	db.Write(change)
	if err := errors.Join(<-change.done, db.Close()); err != nil {
		s.t.Fatal(err)
	}
}

// A backup of a store with damaged rows is made, names them, and fails, so that no
// older one is discarded in its favor. Repair names them, too.
func TestDamagedRowsAreNamed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	host := s.start()
	for _, id := range []string{"whole", "broken"} {
		if _, err := host.Submit(t.Context(), jobhost.Spec{ID: id, Worker: "echo", Payload: []byte(id)}); err != nil {
			t.Fatal(err)
		}
		awaitState(t, host, id, jobhost.Succeeded)
	}
	host.stop()
	s.command("backup", filepath.Join(t.TempDir(), "before"))
	s.tamper("UPDATE result SET data=CAST('another' AS BLOB) WHERE task=(SELECT seq FROM job WHERE id='broken')")

	backup := filepath.Join(t.TempDir(), "backup")
	out, err := s.try("backup", backup)
	if err == nil || !strings.Contains(out, "the result of task 0 of job broken is damaged") || strings.Contains(out, "whole") {
		t.Errorf("backup: %v\n%s", err, out)
	}
	to := filepath.Join(t.TempDir(), "repaired")
	out, err = s.try("repair", to)
	if err != nil || !strings.Contains(out, "1 damaged rows") || !strings.Contains(out, "job broken") {
		t.Errorf("repair: %v\n%s", err, out)
	}
	for _, from := range []string{backup, to} {
		s.command("restore", from, "--replace", "--take-over")
		host = s.start()
		if got, err := host.Result(t.Context(), "whole", 0); err != nil || string(got.Data) != "whole" {
			t.Errorf("%q, %v", got.Data, err)
		}
		if _, err := host.Result(t.Context(), "broken", 0); jobhost.CodeOf(err) != jobhost.CodeDamaged {
			t.Errorf("got %v", err)
		}
		host.stop()
	}
}
