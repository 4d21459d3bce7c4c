package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// TestSharedToken: hosts have the token of the database, whatever their files had, and the log says so. When it was deleted there,
// the next host that starts brings another one.
func TestSharedToken(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	schema := server.Schema(t)
	db := openSchema(t, server.URL(), schema)
	if err := db.Migrate(t.Context(), []pgdb.Schema{}); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	a, b := filepath.Join(t.TempDir(), "token"), filepath.Join(t.TempDir(), "token")
	start := func(path string) string {
		t.Helper()
		token, err := sharedToken(t.Context(), db, path, logger)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(path); err != nil || strings.TrimSpace(string(text)) != token {
			t.Errorf("the file has %q, %v; want the token", text, err)
		}
		return token
	}
	first := start(a)
	if log.Len() > 0 {
		t.Errorf("the first host says %s", &log)
	}
	if err := os.WriteFile(b, []byte("another-token-0123456789\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := start(b); got != first || !strings.Contains(log.String(), "in place of its own") {
		t.Errorf("another host has %q, and says %s", got, &log)
	}
	// A leaked token is replaced.
	server.Exec(t, "DELETE FROM "+schema+".secret WHERE name='token'")
	if err := os.Remove(a); err != nil {
		t.Fatal(err)
	}
	second := start(a)
	if got := start(b); second == first || got != second {
		t.Errorf("the token was %q, and is %q and %q", first, second, got)
	}
}
