package pgdb_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/term"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// TestOutcomeUnknown: a commit whose answer was lost together with the term may have been made, which its error says; what
// came after it surely was not.
func TestOutcomeUnknown(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	proxy := postgres.NewProxy(t, server.Address())
	cfg := config(server.URLAt(proxy.Port()), server.Schema(t), "a")
	cfg.Lease = 2 * time.Second
	h := lead(t, openWith(t, cfg))
	if _, err := h.add("x", 1); err != nil {
		t.Fatal(err)
	}
	direct := open(t, server.URL(), cfg.Schema, "b")
	proxy.Stall(postgres.ToClient)
	made, later := h.newAdd("x", 1), h.newAdd("y", 1)
	h.writer.Write(made)
	for stored(t, direct)["x"] != 2 { // it is made, and the answer doesn't come
	}
	h.writer.Write(later)
	if _, err := made.wait(); !errors.Is(err, term.ErrUnknown) || !errors.Is(err, pgdb.ErrTermOver) {
		t.Errorf("got %v", err)
	}
	if _, err := later.wait(); errors.Is(err, term.ErrUnknown) || !errors.Is(err, pgdb.ErrTermOver) {
		t.Errorf("what was never sent: %v", err)
	}
	proxy.Flow()
}

// TestFencedIsKnown: a commit that another host's term has refused was not made.
func TestFencedIsKnown(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	schema := server.Schema(t)
	h := lead(t, open(t, server.URL(), schema, "a"))
	server.Exec(t, "UPDATE "+schema+".term SET epoch=epoch+1")
	if _, err := h.add("x", 1); errors.Is(err, term.ErrUnknown) || !errors.Is(err, pgdb.ErrTermOver) {
		t.Errorf("got %v", err)
	}
}

// TestTermBeginsOnLostConnection: a connection that is lost before there is a writer is replaced by the writer.
func TestTermBeginsOnLostConnection(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	schema := server.Schema(t)
	h := lead(t, open(t, server.URL(), schema, "a"), func() {
		server.Exec(t, "SELECT pg_terminate_backend(backend) FROM "+schema+".lease")
	})
	if _, err := h.add("x", 1); err != nil {
		t.Error(err)
	}
}

// TestReadLong: what a term begins with has no limit, whatever the server's own is.
func TestReadLong(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	db := open(t, server.URL(), server.Schema(t), "a")
	for name, tt := range map[string]struct {
		read func(func(*pgdb.Session) error) error
		want string
	}{
		"for people":       {func(f func(*pgdb.Session) error) error { return db.Read(t.Context(), f) }, "5s"},
		"as a term begins": {func(f func(*pgdb.Session) error) error { return db.ReadLong(t.Context(), f) }, "0"},
	} {
		var limit string
		err := tt.read(func(s *pgdb.Session) error {
			_, err := s.One([]any{&limit}, "SELECT current_setting('statement_timeout')")
			return err
		})
		if err != nil || limit != tt.want {
			t.Errorf("%s: %q, %v", name, limit, err)
		}
	}
}
