package pgqueue_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/host/queue/pgqueue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// TestFunctionsOfOthers: a program that may submit jobs, and has its own tables and functions in public, adds a function there
// that fits a host's statements better than the server's own. Hosts don't call it, so it doesn't get their rights.
func TestFunctionsOfOthers(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	name := server.Schema(t) // which is free as the name of a database and of a role, too
	server.Exec(t, "CREATE ROLE "+name)
	t.Cleanup(func() { server.Exec(t, "DROP ROLE "+name) }) // after what it owns
	server.Exec(t, "CREATE DATABASE "+name)
	t.Cleanup(func() { server.Exec(t, "DROP DATABASE "+name+" WITH (FORCE)") })
	url := strings.Replace(server.URL(), "/postgres?", "/"+name+"?", 1)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	exec := func(statements ...string) {
		t.Helper()
		for _, sql := range statements {
			if _, err := conn.Exec(t.Context(), strings.ReplaceAll(sql, "APP", name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	exec("GRANT CREATE ON SCHEMA public TO APP", "SET ROLE APP", `CREATE FUNCTION public.unnest(text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
		BEGIN
			EXECUTE 'GRANT SELECT ON jobhost.secret TO APP';
			RETURN QUERY SELECT * FROM pg_catalog.unnest($1);
		END $$`, "RESET ROLE")
	s := openAt(t, url, "jobhost", pgqueue.Schemas(), func(*pgdb.DB, *pgdb.Term, *pgdb.Writer) []pgqueue.Companion { return nil })
	submit(t, s, newSpec("one", "w", func(job *record.JobSpec) { job.Ref = "an object" }))
	exec("GRANT USAGE ON SCHEMA jobhost TO APP")
	var reads bool
	if err := conn.QueryRow(t.Context(), "SELECT has_table_privilege($1, 'jobhost.secret', 'SELECT')", name).Scan(&reads); err != nil {
		t.Fatal(err)
	}
	if reads {
		t.Error("the program can read the token of the API")
	}
}
