package pgdb_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// TestLostUnnoticed: a database that has lost acknowledged commits is noticed by the next one, also when the connection
// has survived, as behind a pooler that goes to another server.
func TestLostUnnoticed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"in the image", "by statements"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testLostUnnoticed(t, name == "by statements")
		})
	}
}

func testLostUnnoticed(t *testing.T, direct bool) {
	server := postgres.Shared(t)
	cfg := config(server.URL(), server.Schema(t), "a")
	var lost atomic.Int64
	cfg.Observer.Lost = func(n int64) { lost.Add(n) }
	h := lead(t, openWith(t, cfg))
	for range 3 {
		if _, err := h.add("x", 1); err != nil {
			t.Fatal(err)
		}
	}
	server.Exec(t, "DELETE FROM "+cfg.Schema+".batch WHERE n>1", "UPDATE "+cfg.Schema+".sums SET n=1")
	change := func() (int64, error) { return h.add("x", 1) }
	if direct {
		change = func() (int64, error) { return h.double("x") }
	}
	if sum, err := change(); !errors.Is(err, pgdb.ErrTermOver) {
		t.Errorf("got %d, %v", sum, err)
	}
	if lost.Load() != 2 {
		t.Errorf("%d commits were reported as lost, want 2", lost.Load())
	}
	if got := stored(t, h.db)["x"]; got != 1 {
		t.Errorf("got %d: it was written on top of what is not there", got)
	}
}

// TestBadData: a change with data that the server rejects fails alone, and the term continues.
func TestBadData(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	h := lead(t, open(t, server.URL(), server.Schema(t), "a"))
	long := ""
	for len(long) < 20_000 { // more than an entry of an index may have
		long += rand.Text()
	}
	for _, bad := range []string{"a\x00b", "\xff", long} {
		before, spoiled, after := h.newAdd("x", 1), h.newAdd(bad, 1), h.newAdd("x", 1)
		h.together(before, spoiled, after)
		if _, err := before.wait(); err != nil {
			t.Errorf("a change before a bad one: %v", err)
		}
		if _, err := spoiled.wait(); jobhost.CodeOf(err) != jobhost.CodeInvalid {
			t.Errorf("the bad one: %v", err)
		}
		if _, err := after.wait(); err != nil {
			t.Errorf("a change after a bad one: %v", err)
		}
	}
	if sum, err := h.add("x", 1); sum != 7 || err != nil {
		t.Errorf("%d, %v", sum, err)
	}
	if err := h.term.Err(); err != nil {
		t.Error(err)
	}
}

// TestCancelledStatement: a commit that an administrator, or a time limit, ends in the server was not made, and may be tried
// again.
func TestCancelledStatement(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	schema := server.Schema(t)
	h := lead(t, open(t, server.URL(), schema, "a"))
	if _, err := h.add("x", 1); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), "BEGIN; LOCK TABLE "+schema+".sums"); err != nil {
		t.Fatal(err)
	}
	a := h.newAdd("x", 1)
	h.writer.Write(a)
	const cancel = "SELECT pg_cancel_backend(pid) FROM pg_locks WHERE NOT granted AND relation=$1::regclass"
	for cancelled := false; !cancelled; {
		err := conn.QueryRow(t.Context(), cancel, schema+".sums").Scan(&cancelled)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			t.Fatal(err)
		}
	}
	if _, err := a.wait(); jobhost.CodeOf(err) != jobhost.CodeUnavailable || errors.Is(err, pgdb.ErrTermOver) {
		t.Errorf("got %v", err)
	}
	if _, err := conn.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if sum, err := h.add("x", 1); sum != 2 || err != nil {
		t.Errorf("%d, %v", sum, err)
	}
}

// TestFullDiskOfTheDatabase: a commit for which the server has no room says so and what to do, and may be tried again.
func TestFullDiskOfTheDatabase(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	schema := server.Schema(t)
	h := lead(t, open(t, server.URL(), schema, "a"))
	server.Exec(t, "CREATE FUNCTION "+schema+".no_room() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'no space left' USING ERRCODE='disk_full'; END$$",
		"CREATE TRIGGER no_room BEFORE INSERT ON "+schema+".sums EXECUTE FUNCTION "+schema+".no_room()")
	if _, err := h.add("x", 1); jobhost.CodeOf(err) != jobhost.CodeUnavailable || !strings.Contains(jobhost.HintOf(err), "disk of the database") {
		t.Errorf("got %v, hint %q", err, jobhost.HintOf(err))
	}
	server.Exec(t, "DROP TRIGGER no_room ON "+schema+".sums")
	if sum, err := h.add("x", 1); sum != 1 || err != nil {
		t.Errorf("%d, %v", sum, err)
	}
}

// TestEncoding: a database that can't hold every text is refused.
func TestEncoding(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	server.Exec(t, "DROP DATABASE IF EXISTS latin", "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
	db, err := pgdb.Open(t.Context(), config(strings.Replace(server.URL(), "/postgres?", "/latin?", 1), "jobhost", "a"))
	if err == nil {
		db.Close()
	}
	if jobhost.CodeOf(err) != jobhost.CodeInvalid {
		t.Errorf("got %v", err)
	}
}

// TestReadsGoWhereWritesGo: after the writer has reconnected, perhaps to another server, reads go to the same server.
func TestReadsGoWhereWritesGo(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	schema := server.Schema(t)
	h := lead(t, open(t, server.URL(), schema, "a"))
	session := func() (pid int64) {
		err := h.db.Read(t.Context(), func(s *pgdb.Session) error {
			_, err := s.One([]any{&pid}, "SELECT pg_backend_pid()")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
	before := session()
	if again := session(); again != before {
		t.Fatalf("two reads used the sessions %d and %d", before, again)
	}
	server.Exec(t, "SELECT pg_terminate_backend(backend) FROM "+schema+".lease")
	if _, err := h.add("x", 1); err != nil {
		t.Fatal(err)
	}
	if after := session(); after == before {
		t.Error("reads go on with the session that they had")
	}
}
