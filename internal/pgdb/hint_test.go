package pgdb_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// guarded starts a server that asks the role "secret" for its password, which is that, and doesn't let the role "barred" in.
func guarded(t *testing.T) *postgres.Server {
	t.Helper()
	server := postgres.Start(t)
	rules := server.Query(t, "SHOW hba_file")[0][0]
	server.Exec(t, "CREATE ROLE secret LOGIN PASSWORD 'secret'", "CREATE ROLE barred LOGIN",
		"COPY (VALUES ('host all secret all scram-sha-256'), ('host all barred all reject'), ('host all all all trust')) TO '"+rules+"'")
	server.Stop(t)
	server.Restart(t)
	return server
}

// urlOf is a URL of a server for a role; options are those behind the question mark.
func urlOf(server *postgres.Server, role, database, options string) string {
	return fmt.Sprintf("postgres://%s@%s/%s?%s", role, server.Address(), database, options)
}

// TestHints: what keeps a host from its database is said once, with what to do about it.
func TestHints(t *testing.T) {
	t.Parallel()
	server := guarded(t)
	server.Exec(t, "CREATE ROLE reader LOGIN", "ALTER ROLE reader SET default_transaction_read_only=on",
		"CREATE ROLE crowd LOGIN CONNECTION LIMIT 0")
	for _, tt := range []struct {
		name, url, want, hint string
	}{
		{"nothing there", "postgres://a@127.0.0.1:1/a", "connection refused", "is PostgreSQL running"},
		{"wrong password", urlOf(server, "secret", "postgres", "password=wrong"), `password authentication failed for user "secret"`, "password in [cluster]"},
		{"not let in", urlOf(server, "barred", "postgres", ""), "pg_hba.conf rejects connection", "is there a role barred"},
		{"no such role", urlOf(server, "nosuch", "postgres", ""), `role "nosuch" does not exist`, "createuser --pwprompt nosuch"},
		{"no such database", urlOf(server, "reader", "none", ""), `database "none" does not exist`, "createdb --owner reader --encoding UTF8 --template template0 none"},
		{"takes no changes", urlOf(server, "reader", "postgres", ""), "read only connection", "name all servers"},
		{"no room", urlOf(server, "crowd", "postgres", ""), "too many connections for role", "max_connections"},
		{"no such file", urlOf(server, "reader", "postgres", "sslmode=verify-full&sslrootcert=/nonexistent/root.pem"), "no such file or directory", "on this machine"},
		{"no TLS", urlOf(server, "reader", "postgres", "sslmode=require"), "server refused TLS connection", "sslmode=disable"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db, err := pgdb.Open(t.Context(), config(tt.url, "public", "a"))
			if err == nil {
				db.Close()
				t.Fatal("it was opened")
			}
			if n := strings.Count(err.Error(), tt.want); n != 1 || strings.Contains(err.Error(), "\n") {
				t.Errorf("%d times %q in %q", n, tt.want, err)
			}
			if hint := jobhost.HintOf(err); !strings.Contains(hint, tt.hint) {
				t.Errorf("the hint of %v: %q", err, hint)
			}
		})
	}
}

// TestPasswordGiven: the password that was given counts, whatever the environment has for other programs.
func TestPasswordGiven(t *testing.T) {
	server := guarded(t)
	t.Setenv("PGPASSWORD", "of another program")
	cfg := config(urlOf(server, "secret", "postgres", ""), "public", "a")
	cfg.Password = "secret"
	db, err := pgdb.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
}

// TestTablesOfAnotherRole: a role that may not make the tables, or use those of another role, is refused with what to do.
// It needn't be allowed to make a schema if one was made for it.
func TestTablesOfAnotherRole(t *testing.T) {
	t.Parallel()
	server := postgres.Start(t)
	server.Exec(t, "CREATE ROLE plain LOGIN", "CREATE SCHEMA made AUTHORIZATION plain")
	url := urlOf(server, "plain", "postgres", "sslmode=disable")
	open(t, server.URL(), "theirs", "a")
	for _, schema := range []string{"missing", "theirs", "made"} {
		t.Run(schema, func(t *testing.T) {
			db, err := pgdb.Open(t.Context(), config(url, schema, "a"))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err = db.Versions(t.Context(), []pgdb.Schema{sums}); err == nil {
				err = db.Migrate(t.Context(), []pgdb.Schema{sums})
			}
			switch hint := jobhost.HintOf(err); {
			case schema == "made" && err == nil:
			case schema != "made" && jobhost.CodeOf(err) == jobhost.CodeDenied && strings.Contains(hint, "ALTER DATABASE postgres OWNER TO plain"):
			default:
				t.Errorf("%v; hint %q", err, hint)
			}
		})
	}
}
