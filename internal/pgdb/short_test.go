package pgdb_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// patient is a change that can wait for the server.
type patient struct{ *add }

func (patient) Patient() bool { return true }

// fill makes the server refuse to write numbers, as if its disk were full; the function that it returns ends that.
func fill(t *testing.T, server *postgres.Server, schema string) (empty func()) {
	t.Helper()
	server.Exec(t, "CREATE OR REPLACE FUNCTION "+schema+".refuse() RETURNS trigger LANGUAGE plpgsql AS "+
		"$$BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE='disk_full'; END$$",
		"CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON "+schema+".sums EXECUTE FUNCTION "+schema+".refuse()")
	return func() { server.Exec(t, "DROP TRIGGER refuse ON "+schema+".sums") }
}

// awaitFull waits until the writer keeps changes back.
func awaitFull(t *testing.T, w *pgdb.Writer) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(time.Minute); w.Full() == nil; <-tick.C {
		if time.Now().After(until) {
			t.Fatal("nothing is kept back")
		}
	}
}

// TestPatientChanges: while the server can't write, changes that can wait do, in their order and before all others, which
// are refused.
func TestPatientChanges(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	schema := server.Schema(t)
	h := lead(t, open(t, server.URL(), schema, "a"))
	empty := fill(t, server, schema)
	first, second := patient{h.newAdd("x", 1)}, patient{h.newAdd("x", 1)}
	h.writer.Write(first)
	awaitFull(t, h.writer)
	if full, _ := errors.AsType[*jobhost.Error](h.writer.Full()); full == nil || full.Code != jobhost.CodeUnavailable || full.Field != jobhost.FieldDisk {
		t.Errorf("it is full: %v", h.writer.Full())
	}
	h.writer.Write(second)
	for range 3 { // each of which is tried together with those that wait
		if _, err := h.add("x", 10); jobhost.CodeOf(err) != jobhost.CodeUnavailable {
			t.Errorf("one that can't wait: %v", err)
		}
	}
	select {
	case <-h.writer.Flowing():
		t.Error("nothing is kept back")
	case err := <-first.done:
		t.Errorf("the first: %v", err)
	case err := <-second.done:
		t.Errorf("the second: %v", err)
	default:
	}
	empty()
	if sum, err := first.wait(); sum != 1 || err != nil {
		t.Errorf("the first: %d, %v", sum, err)
	}
	if sum, err := second.wait(); sum != 2 || err != nil {
		t.Errorf("the second: %d, %v", sum, err)
	}
	<-h.writer.Flowing()
	if err := h.writer.Full(); err != nil {
		t.Error(err)
	}
	if sum, err := h.add("x", 1); sum != 3 || err != nil {
		t.Errorf("%d, %v", sum, err)
	}
}

// TestGiveUp: what is kept back fails when the host is about to end, and a writer that is closed doesn't wait for room.
func TestGiveUp(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	for name, end := range map[string]func(*pgdb.Writer){"give up": (*pgdb.Writer).GiveUp, "close": (*pgdb.Writer).Close} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schema := server.Schema(t)
			h := lead(t, open(t, server.URL(), schema, "a"))
			empty := fill(t, server, schema)
			p := patient{h.newAdd("x", 1)}
			h.writer.Write(p)
			awaitFull(t, h.writer)
			end(h.writer)
			if _, err := p.wait(); jobhost.CodeOf(err) != jobhost.CodeUnavailable {
				t.Errorf("got %v", err)
			}
			<-h.writer.Flowing()
			empty()
		})
	}
}
