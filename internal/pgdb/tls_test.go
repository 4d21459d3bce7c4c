package pgdb_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// TestTLS: a server whose certificate is of an authority of its own is known by the file of that, and not without it nor
// under another name.
func TestTLS(t *testing.T) {
	t.Parallel()
	server, root := postgres.StartTLS(t)
	url := func(host, options string) string {
		return fmt.Sprintf("postgres://postgres@%s:%d/postgres?%s", host, server.Port(), options)
	}
	db := open(t, url("127.0.0.1", "sslmode=verify-full&sslrootcert="+root), "jh_tls", "a")
	h := lead(t, db)
	if sum, err := h.add("x", 1); err != nil || sum != 1 {
		t.Errorf("got %d, %v", sum, err)
	}
	rows := server.Query(t, "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name='jobhost a' AND NOT ssl")
	if rows[0][0] != "0" {
		t.Errorf("%s connections are without TLS", rows[0][0])
	}
	for name, bad := range map[string]string{
		"without the authority": url("127.0.0.1", "sslmode=verify-full"), "under another name": url("localhost", "sslmode=verify-full&sslrootcert="+root),
	} {
		db, err := pgdb.Open(t.Context(), config(bad, "jh_tls", "b"))
		if err == nil {
			db.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
