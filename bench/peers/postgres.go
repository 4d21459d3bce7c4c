package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// postgresSettings differ from what initdb leaves: more memory than the default
// of 128 MB, and room for log files, which are reused rather than recreated, so
// that a checkpoint doesn't fall into a short measurement. Everything that
// durability depends on is unchanged.
var postgresSettings = []string{"shared_buffers=256MB", "max_connections=100", "min_wal_size=1GB", "max_wal_size=4GB", "logging_collector=off"}

// servePostgres starts a cluster in a folder. It is created by the first call
// and reused by later ones, with an empty database each time.
func servePostgres(ctx context.Context, dir string) (*server, error) {
	initdb, err := postgresProgram("initdb")
	if err != nil {
		return nil, err
	}
	postgres, err := postgresProgram("postgres")
	if err != nil {
		return nil, err
	}
	as, err := newServant(dir, "postgres")
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	if made, err := filepath.Glob(filepath.Join(data, "PG_VERSION")); err != nil || made == nil {
		create := exec.CommandContext(ctx, initdb, "--pgdata="+data, "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8")
		create.Dir = dir
		create.SysProcAttr = &syscall.SysProcAttr{Credential: as.credential}
		if out, err := create.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("initdb: %w\n%s", err, out)
		}
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	args := []string{"-D", data, "-h", "127.0.0.1", "-p", fmt.Sprint(port), "-k", dir}
	for _, s := range postgresSettings {
		args = append(args, "-c", s)
	}
	admin := fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port)
	address := fmt.Sprintf("postgres://postgres@127.0.0.1:%d/peers?sslmode=disable", port)
	ready := func(ctx context.Context) error { return emptyDatabase(ctx, admin) }
	// Interrupt ends sessions and stops, quit stops as a crash would.
	return start(ctx, as, address, []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT}, ready, postgres, args...)
}

// emptyDatabase replaces the database of an earlier measurement.
func emptyDatabase(ctx context.Context, admin string) (err error) {
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	for _, sql := range []string{"DROP DATABASE IF EXISTS peers", "CREATE DATABASE peers", "CHECKPOINT"} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// postgresProgram finds a program of PostgreSQL, the newest one. Debian keeps
// them out of the path.
func postgresProgram(name string) (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		return slices.MaxFunc(found, func(a, b string) int {
			if len(a) != len(b) { // 9.6 before 15
				return len(a) - len(b)
			}
			return strings.Compare(a, b)
		}), nil
	}
	return program(name)
}

// program finds a program in the path.
func program(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%w; bench/peers/install.sh installs it", err)
	}
	return path, nil
}
