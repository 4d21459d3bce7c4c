package pgdb

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestExposed: others on the network can read connections to another machine, or answer in its place, unless the certificate is
// checked.
func TestExposed(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]bool{
		"postgres://u@db.example/d":                                      true,
		"postgres://u@db.example/d?sslmode=disable":                      true,
		"postgres://u@db.example/d?sslmode=require":                      true,
		"postgres://u@10.0.0.1,127.0.0.1/d?sslmode=prefer":               true,
		"postgres://u@127.0.0.1,10.0.0.1/d?sslmode=disable":              true,
		"postgres://u@db.example/d?sslmode=verify-ca":                    false,
		"postgres://u@db-1.example,db-2.example/d?sslmode=verify-full":   false,
		"postgres://u@127.0.0.1/d":                                       false,
		"postgres://u@localhost,[::1]/d?sslmode=disable":                 false,
		"postgres://u@/d?host=/run/postgresql&sslmode=disable":           false,
		"postgres://u@/d?host=/run/postgresql,db.example&sslmode=prefer": true,
	} {
		c, err := pgconn.ParseConfig(url)
		if err != nil {
			t.Fatal(err)
		}
		if got := exposed(c); got != want {
			t.Errorf("%s: %v", url, got)
		}
	}
}
