package cluster_test

import (
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/postgres"
	"github.com/jobhost/jobhost/state/payload/pgpayload"
)

// TestPlainRole: hosts need no superuser and no extension. A role that owns a database makes the tables, and takes over.
func TestPlainRole(t *testing.T) {
	t.Parallel()
	server := postgres.Start(t)
	server.Exec(t, "CREATE ROLE plain LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE", "GRANT CREATE ON DATABASE postgres TO plain")
	w := newEnginesOn(t, server, "plain")
	w.schemas = append(w.schemas, pgpayload.Schemas()...)
	a := w.join(t, "a")
	c := serve(t, w.join(t, "c", neverLeads))
	finish := func(id string) {
		t.Helper()
		if _, err := c.Submit(t.Context(), jobhost.Spec{ID: id, Worker: "test", Entry: "echo", Payload: []byte(id)}); err != nil {
			t.Fatal(err)
		}
		if job, err := c.Wait(t.Context(), id); err != nil || job.State != jobhost.Succeeded {
			t.Fatalf("%+v, %v", job, err)
		}
	}
	finish("one")
	server.Exec(t, "SET ROLE plain; SELECT "+w.schema+".submit('test', 'x', '{\"id\": \"two\", \"entry\": \"echo\"}')")
	b := w.join(t, "b")
	a.proxy.Stall(postgres.ToServer)
	a.proxy.Cut()
	a.Kill()
	if why := b.reason(t); why == "" {
		t.Error("b does not lead")
	}
	finish("three")
	job, err := c.Wait(t.Context(), "two")
	for deadline := time.Now().Add(soon); jobhost.CodeOf(err) == jobhost.CodeNotFound && time.Now().Before(deadline); <-time.After(10 * time.Millisecond) {
		job, err = c.Wait(t.Context(), "two") // the leader looks for such jobs ten times a second
	}
	if err != nil || job.State != jobhost.Succeeded {
		t.Errorf("%+v, %v", job, err)
	}
	if n := server.Query(t, "SELECT extname FROM pg_extension WHERE extname<>'plpgsql'"); len(n) > 0 {
		t.Errorf("there are extensions: %v", n)
	}
}
