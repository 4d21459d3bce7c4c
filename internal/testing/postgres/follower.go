package postgres

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Follower starts a streaming replica of this server, with the settings of this one and more options. It stops with the
// test.
func (s *Server) Follower(t testing.TB, options ...string) *Server {
	t.Helper()
	f, err := s.follower(t, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.Stop(t)
		_ = os.RemoveAll(f.dir)
	})
	return f
}

func (s *Server) follower(t testing.TB, options []string) (f *Server, err error) {
	f = &Server{options: append(s.options[:len(s.options):len(s.options)], options...)}
	if f.dir, err = newFolder(t); err != nil {
		return nil, err
	}
	if err := f.owner(); err != nil {
		return nil, err
	}
	if err := f.run("pg_basebackup", "--pgdata="+f.data(), "--host=127.0.0.1", "--port="+strconv.Itoa(s.port), "--username=postgres",
		"--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync"); err != nil {
		return nil, err
	}
	return f, f.launchAnywhere()
}

// Synchronous makes commits wait for the follower, once it follows.
func (s *Server) Synchronous(t testing.TB) {
	t.Helper()
	s.Exec(t, "ALTER SYSTEM SET synchronous_standby_names='*'", "SELECT pg_reload_conf()")
	s.await(t, "SELECT FROM pg_stat_replication WHERE sync_state='sync'")
}

// Unfollow ends replication to a follower, so that it lacks what the other server writes from now on.
func (s *Server) Unfollow(t testing.TB) {
	t.Helper()
	s.Exec(t, "ALTER SYSTEM SET primary_conninfo=''", "SELECT pg_reload_conf()")
	s.await(t, "SELECT WHERE NOT EXISTS (SELECT FROM pg_stat_wal_receiver)")
}

// Promote makes a follower a primary.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	s.Exec(t, "SELECT pg_promote()")
	s.await(t, "SELECT WHERE NOT pg_is_in_recovery()")
}

// await waits until a query has a row.
func (s *Server) await(t testing.TB, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		tag, err := conn.Exec(ctx, sql)
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		if tag.RowsAffected() > 0 {
			return
		}
		<-tick.C
	}
}
