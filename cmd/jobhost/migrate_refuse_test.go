package main

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/internal/testing/postgres"
	"github.com/jobhost/jobhost/state/payload"
	"github.com/jobhost/jobhost/state/payload/filepayload"
)

// moveSite is a manifest with a database of its own, and a folder of a host on SQLite.
type moveSite struct {
	t      *testing.T
	server *postgres.Server
	dir    string // with the manifest
	from   string // the folder
	url    string
}

func newMoveSite(t *testing.T, server *postgres.Server) *moveSite {
	t.Helper()
	s := &moveSite{t: t, server: server, dir: t.TempDir()}
	s.from = filepath.Join(s.dir, "old")
	name := strings.ReplaceAll(server.Schema(t), "jh_", "db_")
	server.Exec(t, "CREATE DATABASE "+name)
	u, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	s.url = u.String()
	s.manifest("")
	return s
}

// manifest writes the manifest, with more at its end.
func (s *moveSite) manifest(more string) {
	s.t.Helper()
	text := fmt.Sprintf("[host]\nstore = %q\ndurability = \"relaxed\"\n[worker.w]\nplugin = \"echo.wasm\"\n%s", s.url, more)
	for name, data := range map[string][]byte{"manifest.toml": []byte(text), "echo.wasm": guests.Echo} {
		if err := os.WriteFile(filepath.Join(s.dir, name), data, 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
}

// migrate runs the command, and returns what it prints.
func (s *moveSite) migrate(args ...string) (code int, stdout, stderr string) {
	s.t.Helper()
	var out, errs bytes.Buffer
	code = run(append([]string{"migrate", "-f", filepath.Join(s.dir, "manifest.toml"), "--from", "sqlite:" + s.from}, args...), nil, &out, &errs)
	return code, out.String(), errs.String()
}

// statements are a change of a store behind its back; they implement [sqlitedb.Change].
type statements struct {
	sql  []string
	done chan error
}

func (s *statements) Ops() int       { return 1 }
func (s *statements) Done(err error) { s.done <- err }

func (s *statements) Apply(tx *sqlitedb.Tx) error {
	for _, sql := range s.sql {
		if err := tx.Stmt(sql).Exec(); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// edit changes the rows of a folder.
func edit(t *testing.T, dir string, sql ...string) {
	t.Helper()
	db, err := sqlitedb.Open(sqlitedb.Options{Dir: dir, Schemas: schemas()})
	if err != nil {
		t.Fatal(err)
	}
	s := &statements{sql: sql, done: make(chan error, 1)}
	db.Write(s)
	if err := <-s.done; err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// small puts a job with a result into a folder, and a key.
func small(t *testing.T, dir string) {
	t.Helper()
	s := openSQLite(t, dir)
	done := make(chan error)
	submit := &record.Submit{Job: &record.JobSpec{
		ID: "one", Worker: "w", Tasks: 2, Priority: jobhost.Normal, MaxAttempts: 3, CreatedAt: 1, ReadyAt: 1, Digest: [16]byte{1}, Payload: []byte("payload"),
	}}
	s.Commit([]record.Op{submit}, func(_ []record.OpResult, err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	ops := []record.Op{
		&record.Settle{Key: 1, Status: record.Succeeded, Number: 1, Attempt: 1, EndedAt: 2, Result: []byte("result"), ResultSize: 6},
		&record.ChangeKV{Worker: "w", Changes: []record.KVChange{{Key: "k", Value: []byte("v")}}},
		&record.Note{Name: "pause.w", Text: "paused"},
	}
	s.Commit(ops, func(_ []record.OpResult, err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestMigrateFrom: a store is checked, moved, and not moved twice.
func TestMigrateFrom(t *testing.T) {
	t.Parallel()
	s := newMoveSite(t, postgres.Shared(t))
	small(t, s.from)
	if err := os.WriteFile(filepath.Join(s.from, "token"), []byte("0123456789abcdef0123456789abcdef0123456789a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := s.migrate("--check")
	if code != 0 || !strings.HasPrefix(out, "can be moved: 1 jobs, 2 tasks, 0 dead letters, 0 workflows, 1 keys,") {
		t.Fatalf("check: %d, %s, %s", code, out, errs)
	}
	code, out, errs = s.migrate("-o", "json")
	if code != 0 || !strings.Contains(out, `"job":1`) || !strings.Contains(out, `"token":true`) || !strings.Contains(out, `"written":true`) {
		t.Fatalf("moved: %d, %s, %s", code, out, errs)
	}
	for _, args := range [][]string{nil, {"--check"}} {
		if code, _, errs = s.migrate(args...); code != 1 || !strings.Contains(errs, "there are jobs in the database already") {
			t.Errorf("moved again: %d, %s", code, errs)
		}
	}
}

// TestMigrateFromRefuses: what can't be moved is refused with what is wrong and what to do, nothing is in the database after
// that, and when it was put right it can be moved.
func TestMigrateFromRefuses(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	for _, tt := range []struct {
		name string
		// wrong makes something wrong, and returns how to put it right; nil = it can't be.
		wrong func(t *testing.T, s *moveSite) (right func())
		want  []string
	}{
		{"no store", func(_ *testing.T, s *moveSite) func() {
			was := s.from
			s.from += "er"
			return func() { s.from = was }
		}, []string{"there is no store in", "jobhost.db"}},
		{"in use", func(t *testing.T, s *moveSite) func() {
			store := openSQLite(t, s.from)
			return func() { _ = store.Close() }
		}, []string{"is in use by process", "stop that jobhost first"}},
		{"older", func(t *testing.T, s *moveSite) func() {
			edit(t, s.from, "UPDATE schema SET version=version-1 WHERE name='effects'", "ALTER TABLE kv DROP COLUMN sum")
			return func() { _ = openSQLite(t, s.from).Close() }
		}, []string{"was written by an older jobhost", "start this jobhost on it once"}},
		{"newer", func(t *testing.T, s *moveSite) func() {
			edit(t, s.from, "UPDATE schema SET version=version+1 WHERE name='effects'")
			return nil
		}, []string{"was written by a newer jobhost"}},
		{"host on the database", func(t *testing.T, s *moveSite) func() {
			db := openSchema(t, s.url, "jobhost")
			if err := db.Migrate(t.Context(), sharedSchemas()); err != nil {
				t.Fatal(err)
			}
			if _, err := db.Beat(t.Context(), pgdb.Host{Name: "alive", Key: []byte("k")}); err != nil {
				t.Fatal(err)
			}
			return func() { _ = db.Leave(context.Background(), "alive", []byte("k")) }
		}, []string{"the database is in use by alive", "stop all hosts"}},
		{
			"damaged result", damage("UPDATE result SET data=x'726573756c7a'", "UPDATE result SET data=x'726573756c74'"),
			[]string{"the result of task 0 of job one is damaged", "1 rows of the store", "operations.md#rows"},
		},
		{"damaged payload", damage("UPDATE job SET payload=x'00'", "UPDATE job SET payload=x'7061796c6f6164'"), []string{"the payload of job one is damaged"}},
		{"damaged job", damage("UPDATE job SET priority=1", ""), []string{"job one is damaged"}},
		{"damaged key", damage("UPDATE kv SET value=x'00'", ""), []string{`the value of key "k" is damaged`}},
		{"damaged note", damage("UPDATE note SET text='x'", ""), []string{`the note "pause.w" is damaged`}},
		{"missing result", damage("DELETE FROM result", ""), []string{"the result of a task of job one is missing"}},
		{"missing task", damage("DELETE FROM task WHERE idx=1", ""), []string{"a task of job one is missing"}},
		{"missing job", damage("DELETE FROM job", ""), []string{"the job of the task with the key 1, 2 is missing"}},
		{
			"key of bytes", damage("UPDATE kv SET sum=NULL, key=CAST(x'ff00' AS TEXT)", "UPDATE kv SET key='k'"),
			[]string{`the key "\xff\x00" in table kv has characters that PostgreSQL doesn't take`},
		},
		{"damaged page", func(t *testing.T, s *moveSite) func() {
			edit(t, s.from, "DELETE FROM job", "DELETE FROM task")
			fillStore(t, s.from, 300, bytes.Repeat([]byte("payload "), 128))
			path := filepath.Join(s.from, sqlitedb.FileName)
			was, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			is := bytes.Clone(was)
			for i := range 1000 {
				is[len(is)/2+i] ^= 1
			}
			write := func(data []byte) {
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(is)
			return func() { write(was) }
		}, []string{"is damaged", "jobhost repair"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newMoveSite(t, server)
			small(t, s.from)
			right := tt.wrong(t, s)
			code, out, errs := s.migrate()
			if code != 1 || out != "" {
				t.Errorf("exit code %d, %s", code, out)
			}
			for _, want := range tt.want {
				if !strings.Contains(errs, want) {
					t.Errorf("%q is not in\n%s", want, errs)
				}
			}
			if right == nil {
				return
			}
			right()
			if code, _, errs := s.migrate(); code != 0 {
				t.Errorf("put right: %d, %s", code, errs)
			}
		})
	}
}

// damage returns what changes a store, and what changes it back; "" = nothing does.
func damage(wrong, right string) func(*testing.T, *moveSite) func() {
	return func(t *testing.T, s *moveSite) func() {
		edit(t, s.from, wrong)
		if right == "" {
			return nil
		}
		return func() { edit(t, s.from, right) }
	}
}

// TestMigratePayloads: payloads in a folder need a store of their name, and go into it.
func TestMigratePayloads(t *testing.T) {
	t.Parallel()
	s := newMoveSite(t, postgres.Shared(t))
	folder := filepath.Join(s.dir, "elsewhere")
	ref := putObject(t, folder, "content")
	store := openSQLite(t, s.from)
	done := make(chan error)
	store.Commit([]record.Op{&record.Submit{Job: &record.JobSpec{ID: "one", Worker: "w", Tasks: 1, MaxAttempts: 1, CreatedAt: 1, Ref: ref.String()}}},
		func(_ []record.OpResult, err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	refused := func(want string, args ...string) {
		t.Helper()
		if code, _, errs := s.migrate(args...); code != 1 || !strings.Contains(errs, want) {
			t.Errorf("exit code %d, and %q is not in\n%s", code, want, errs)
		}
	}
	refused(`there are payloads in the store local, which the manifest doesn't have`)
	s.manifest("[[payload.store]]\nname = \"local\"\nkind = \"database\"\n")
	refused("the folder of the payload store local is not known")
	refused("1 payloads are not in their folder", "--payloads", "local="+s.dir)
	refused("1 payloads are not in their folder", "--payloads", "local="+s.dir, "--check")
	if code, _, errs := s.migrate("--payloads", "local="+folder); code != 0 {
		t.Fatal(errs)
	}
	db := openSchema(t, s.url, "jobhost")
	to, err := openPayloadStore(&manifest.PayloadStore{Kind: manifest.DatabasePayloads}, db, nil)
	if err != nil {
		t.Fatal(err)
	}
	if there, err := has(t.Context(), to, ref.Key); err != nil || !there {
		t.Errorf("the object is not there: %v", err)
	}
}

// putObject makes an object in a folder.
func putObject(t *testing.T, dir, content string) payload.Ref {
	t.Helper()
	store, err := filepayload.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	ref := payload.Ref{Store: "local", Key: payload.NewKey(time.Now()), Size: int64(len(content))}
	o, err := store.Create(t.Context(), ref.Key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := o.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return ref
}

// TestMovedDigests: a job that a version before has stored on SQLite is found when it is submitted again to what it was
// moved to, and other content is a conflict still.
func TestMovedDigests(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	dir, schema := t.TempDir(), server.Schema(t)
	small(t, dir)
	edit(t, dir, "UPDATE job SET digest=x'02000000000000000000000000000000'")
	if _, err := moveRows(t.Context(), t, dir, server.URL(), schema); err != nil {
		t.Fatal(err)
	}
	s := openPostgres(t, server.URL(), schema)
	for before, want := range map[byte]jobhost.Code{2: "", 3: jobhost.CodeConflict} {
		job := &record.JobSpec{ID: "one", Worker: "w", Tasks: 2, Digest: [16]byte{2}, DigestBefore: [16]byte{before}}
		done := make(chan record.OpResult)
		s.Commit([]record.Op{&record.Submit{Job: job}}, func(res []record.OpResult, _ error) { done <- res[0] })
		if res := <-done; jobhost.CodeOf(res.Err) != want || res.Existing != (want == "") {
			t.Errorf("digest %d: %+v", before, res)
		}
	}
	there, err := s.Job(t.Context(), "one")
	if err != nil || !(&record.JobSpec{DigestBefore: [16]byte{2}}).Repeats(&there.JobSpec) {
		t.Errorf("got %+v, %v", there, err)
	}
}
