package pgdb_test

import (
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	for _, tt := range []struct {
		name, url, want string
	}{
		{"no address", "postgres://%zz", "not an address of PostgreSQL"},
		{"nobody there", server.URLAt(1), "connect to PostgreSQL"},
		{"no such database", strings.Replace(server.URL(), "/postgres?", "/none?", 1), `database "none" does not exist`},
		{"without fsync", server.URL(), "fsync is off: the server may lose what it has acknowledged"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := config(tt.url, "public", "a")
			cfg.Relaxed = false
			cfg.Password = "hunter2"
			_, err := pgdb.Open(t.Context(), cfg)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	schema := server.Schema(t)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			db, err := pgdb.Open(t.Context(), config(server.URL(), schema, "a"))
			if err != nil {
				t.Error(err)
				return
			}
			defer db.Close()
			if err := db.Migrate(t.Context(), []pgdb.Schema{sums}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	db := open(t, server.URL(), schema, "a")
	versions, err := db.Versions(t.Context(), []pgdb.Schema{sums})
	if err != nil || len(versions) != 2 || versions[1] != (pgdb.Version{Name: "sums", Have: 1, Want: 1}) {
		t.Errorf("%v, %v", versions, err)
	}
	server.Exec(t, "UPDATE "+schema+".schema SET version=7 WHERE name='sums'")
	if err := db.Migrate(t.Context(), []pgdb.Schema{sums}); err == nil || !strings.Contains(err.Error(), "sums version 7, and this one knows 1") {
		t.Errorf("a newer database: %v", err)
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	h := lead(t, open(t, server.URL(), server.Schema(t), "a"))
	var group sync.WaitGroup
	for _, key := range []string{"x", "y", "z"} {
		for range 8 {
			group.Go(func() {
				for range 50 {
					if _, err := h.add(key, 1); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	group.Wait()
	if got, want := stored(t, h.db), map[string]int64{"x": 400, "y": 400, "z": 400}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// A change that fails leaves the others of its group alone, and what it did to the image.
	refusal := errors.New("refused")
	changes := make([]*add, 30)
	for i := range changes {
		changes[i] = &add{image: h.image, key: "x", delta: 1, done: make(chan error, 1)}
		if i%3 == 1 {
			changes[i].fail = refusal
		}
		h.writer.Write(changes[i])
	}
	for i, c := range changes {
		if err := <-c.done; !errors.Is(err, c.fail) {
			t.Errorf("change %d: %v", i, err)
		}
	}
	if got := stored(t, h.db)["x"]; got != 420 {
		t.Errorf("got %d, want 420", got)
	}
}

// TestOneLeads: a second host leads as soon as the first has released its term, and not before.
func TestOneLeads(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	schema := server.Schema(t)
	first := lead(t, open(t, server.URL(), schema, "a"))
	db := open(t, server.URL(), schema, "b")
	if l, err := db.Leader(t.Context()); err != nil || l.Host != "a" || l.Address != "a:7070" || l.Epoch != first.term.Epoch() || l.Released {
		t.Errorf("%+v, %v", l, err)
	}
	if _, err := first.add("x", 1); err != nil {
		t.Fatal(err)
	}
	next := make(chan *host)
	go func() { next <- lead(t, db) }()
	first.writer.Close()
	released := time.Now()
	if err := first.term.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := <-next
	if took := time.Since(released); took > 3*time.Second {
		t.Errorf("it took %v", took)
	}
	if second.term.Epoch() <= first.term.Epoch() {
		t.Errorf("epoch %d after %d", second.term.Epoch(), first.term.Epoch())
	}
	if sum, err := second.add("x", 1); sum != 2 || err != nil {
		t.Errorf("%d, %v", sum, err)
	}
}

// TestFence: a host whose term another one has ended can write nothing more, and notices.
func TestFence(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	schema := server.Schema(t)
	first := lead(t, open(t, server.URL(), schema, "a"))
	if _, err := first.add("x", 1); err != nil {
		t.Fatal(err)
	}
	db := open(t, server.URL(), schema, "b")
	l, err := db.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	term, err := db.TakeOver(t.Context(), l)
	if err != nil || term == nil {
		t.Fatal(term, err)
	}
	defer func() { _ = term.Release(t.Context()) }()
	if _, err := first.add("x", 1); !errors.Is(err, pgdb.ErrTermOver) {
		t.Errorf("got %v", err)
	}
	select {
	case <-first.term.Done():
	case <-time.After(10 * time.Second):
		t.Error("the term is not over")
	}
	if got := stored(t, db)["x"]; got != 1 {
		t.Errorf("got %d", got)
	}
	if again, err := db.TakeOver(t.Context(), l); again != nil || err != nil {
		t.Errorf("a term that is over was taken again: %v, %v", again, err)
	}
}
