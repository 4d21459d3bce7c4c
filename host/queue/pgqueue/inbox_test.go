package pgqueue_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// TestInbox: a program of a role that may do nothing else submits jobs in its own transactions; each leaves the inbox
// with its submit or its refusal, and not before its transaction has committed.
func TestInbox(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	s := open(t, server.Schema(t))
	role := s.schema + "_app"
	server.Exec(t, "CREATE ROLE "+role+" LOGIN", "GRANT USAGE ON SCHEMA "+s.schema+" TO "+role, "CREATE TABLE public."+role+" (n int)",
		"GRANT INSERT ON public."+role+" TO "+role)
	t.Cleanup(func() { server.Exec(t, "DROP TABLE public."+role, "DROP OWNED BY "+role, "DROP ROLE "+role) })
	conn, err := pgx.Connect(t.Context(), strings.Replace(server.URL(), "postgres@", role+"@", 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })

	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	submit := func(sql string) (id string) {
		if err := tx.QueryRow(t.Context(), strings.ReplaceAll(sql, "jobhost.", s.schema+".")).Scan(&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	if _, err := tx.Exec(t.Context(), "INSERT INTO public."+role+" VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	named := submit(`SELECT jobhost.submit('echo', 'text', '{"id": "mine", "priority": "high"}')`)
	plain := submit(`SELECT jobhost.submit('echo', '\x00ff'::bytea)`)
	value := submit(`SELECT jobhost.submit('echo', '{"a": 1}'::jsonb)`)
	if jobs := incoming(t, s); len(jobs) != 0 {
		t.Fatalf("%d jobs of a transaction that is open", len(jobs))
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	jobs := incoming(t, s)
	if len(jobs) != 3 || named != "mine" || jobs[0].ID != named || jobs[1].ID != plain || jobs[2].ID != value ||
		string(jobs[0].Payload) != "text" || string(jobs[1].Payload) != "\x00\xff" || string(jobs[2].Payload) != `{"a": 1}` {
		t.Fatalf("got %+v", jobs)
	}
	for _, want := range []string{`"priority": "high"`, `"worker": "echo"`, `"id": "mine"`} {
		if !strings.Contains(string(jobs[0].Body), want) {
			t.Errorf("no %s in %s", want, jobs[0].Body)
		}
	}

	c := newCaller(s)
	spec := func(id string) *record.JobSpec {
		return &record.JobSpec{ID: id, Worker: "echo", Tasks: 1, CreatedAt: 1}
	}
	if err := c.do(&record.Submit{Job: spec(named), Incoming: jobs[0].Number}); err != nil {
		t.Fatal(err)
	}
	other := spec(named)
	other.Digest[0] = 1
	if err := c.do(&record.Submit{Job: other, Incoming: jobs[1].Number}); err == nil {
		t.Fatal("a job with another's id was not refused")
	}
	if err := c.do(&record.Refuse{Incoming: jobs[2].Number, Reason: "no\x00\xff"}); err != nil {
		t.Fatal(err)
	}
	if left := incoming(t, s); len(left) != 0 {
		t.Errorf("%+v are still there", left)
	}
	reasons := map[string]string{}
	for _, row := range server.Query(t, "SELECT id, reason FROM "+s.schema+".refused") {
		reasons[row[0]] = row[1]
	}
	if len(reasons) != 2 || !strings.Contains(reasons[plain], "exists with other content") || reasons[value] != "no\uFFFD\uFFFD" {
		t.Errorf("refused: %v", reasons)
	}
	if _, err := conn.Exec(t.Context(), "DELETE FROM "+s.schema+".inbox"); err == nil {
		t.Error("the program may do more than submit")
	}
}

// TestRefusedIsForgotten: refusals are kept for a week, whether or not there are more.
func TestRefusedIsForgotten(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	s := open(t, server.Schema(t))
	for n, id := range []string{"old", "young"} {
		server.Exec(t, "SELECT "+s.schema+".submit('nosuch', 'x', '{\"id\": \""+id+"\"}')")
		must(t, s, &record.Refuse{Incoming: int64(n + 1), Reason: "there is no worker"})
	}
	server.Exec(t, "UPDATE "+s.schema+".refused SET refused_at=refused_at-CASE id WHEN 'old' THEN interval '7 days 1 minute' ELSE interval '6 days 23 hours' END")
	must(t, s, &record.Tidy{At: 1, Limit: 10})
	if left := server.Query(t, "SELECT id FROM "+s.schema+".refused"); len(left) != 1 || left[0][0] != "young" {
		t.Errorf("left are %v", left)
	}
}

func incoming(t *testing.T, s *store) []record.Incoming {
	t.Helper()
	jobs, err := s.Incoming(t.Context(), 100, nil)
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}
