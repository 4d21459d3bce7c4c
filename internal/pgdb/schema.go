package pgdb

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/logkey"
)

// Schema is the tables of one package. Packages share a namespace in the database, and each has a version of its own.
type Schema struct {
	// Name identifies the package in the table of versions. It never changes.
	Name string
	// Steps lead from nothing to the present version, which is their number. A step that was released never changes.
	// Statements are separated by semicolons.
	Steps []string
}

// own are the tables of this package.
//
//	schema  the version of each package's tables
//	term    the fence: the epoch of each shard, which only a takeover changes
//	lease   which host leads, and when it last renewed that; not in term, since batches lock the rows of that
//	host    all hosts, with the public halves of their keys
//	batch   a row for each commit, by which its outcome is found out if the connection is lost
//	secret  values that all hosts share, such as the token of the API
var own = Schema{Name: "cluster", Steps: []string{
	`
	CREATE TABLE jobhost.term (shard smallint PRIMARY KEY, epoch bigint NOT NULL);
	CREATE TABLE jobhost.lease (shard smallint PRIMARY KEY, epoch bigint NOT NULL, host text NOT NULL, address text NOT NULL,
		backend int NOT NULL, renewed timestamptz NOT NULL, released bool NOT NULL) WITH (fillfactor=50);
	CREATE TABLE jobhost.host (name text PRIMARY KEY, address text NOT NULL, key bytea NOT NULL, version text NOT NULL,
		slots int NOT NULL, seen timestamptz NOT NULL) WITH (fillfactor=50);
	CREATE TABLE jobhost.batch (shard smallint, n bigint, epoch bigint NOT NULL, PRIMARY KEY (shard, n))`, `
	ALTER TABLE jobhost.host ADD COLUMN busy int NOT NULL DEFAULT 0, ADD COLUMN may_lead bool NOT NULL DEFAULT true,
		ADD COLUMN since timestamptz NOT NULL DEFAULT now(), ADD COLUMN drained bool NOT NULL DEFAULT false, ADD COLUMN wanted timestamptz;
	CREATE TABLE jobhost.secret (name text PRIMARY KEY, value bytea NOT NULL)`,
}}

// Version is the version of one package's tables.
type Version struct {
	Name       string
	Have, Want int
}

// Versions returns the versions of the tables, those in the database and those that this program needs.
func (db *DB) Versions(ctx context.Context, schemas []Schema) (list []Version, err error) {
	have, err := db.versions(ctx, db.pool)
	if err != nil {
		return nil, explainRead(ctx, db.explainTables(err))
	}
	for _, s := range append([]Schema{own}, schemas...) {
		list = append(list, Version{Name: s.Name, Have: have[s.Name], Want: len(s.Steps)})
	}
	return list, nil
}

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func (db *DB) versions(ctx context.Context, q querier) (map[string]int, error) {
	versions := map[string]int{}
	rows, err := q.Query(ctx, "SELECT FROM pg_tables WHERE schemaname=$1 AND tablename='schema'", db.cfg.Schema)
	if err != nil {
		return nil, err
	}
	kept := rows.Next()
	rows.Close()
	if err := rows.Err(); err != nil || !kept {
		return versions, err
	}
	if rows, err = q.Query(ctx, db.SQL("SELECT name, version FROM jobhost.schema")); err != nil {
		return nil, err
	}
	var name string
	var version int
	_, err = pgx.ForEachRow(rows, []any{&name, &version}, func() error {
		versions[name] = version
		return nil
	})
	return versions, err
}

// migrateLock is the first half of the keys of the advisory locks of migrations, "jobh". The other is that of the schema:
// those of other schemas in the database don't wait for each other.
const migrateLock = 0x6a6f6268

// Migrate brings the database up to date. One host does so at a time; the others wait. If there is nothing to do it doesn't,
// since any role of the database can take the lock.
func (db *DB) Migrate(ctx context.Context, schemas []Schema) error {
	versions, err := db.Versions(ctx, schemas)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(versions, func(v Version) bool { return v.Have != v.Want }) {
		return nil
	}
	conn, err := db.connect(ctx)
	if err != nil {
		return err
	}
	// The lock is released with the session.
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := db.lock(ctx, conn); err != nil {
		return err
	}
	have, err := db.versions(ctx, conn)
	if err != nil {
		return db.explainTables(err)
	}
	if len(have) == 0 {
		if err := db.create(ctx, conn); err != nil {
			return db.explainTables(err)
		}
	}
	for _, s := range append([]Schema{own}, schemas...) {
		if have[s.Name] > len(s.Steps) {
			return &jobhost.Error{
				Code: jobhost.CodeInvalid, Message: fmt.Sprintf("the database was written by a newer jobhost: %s version %d, and this one knows %d", s.Name, have[s.Name], len(s.Steps)),
				Hint: "run the newer jobhost",
			}
		}
		for i := have[s.Name]; i < len(s.Steps); i++ {
			if err := db.stepPatiently(ctx, conn, &s, i); err != nil {
				return db.explainTables(fmt.Errorf("migrate %s to version %d: %w", s.Name, i+1, err))
			}
			db.cfg.Logger.Info("database migrated", "part", s.Name, logkey.Version, i+1)
		}
	}
	return nil
}

// lock takes the lock of migrations. It polls, since a session that waits for an advisory lock holds a snapshot, and CREATE
// INDEX CONCURRENTLY in the other session would wait for that.
func (db *DB) lock(ctx context.Context, conn *pgx.Conn) error {
	slow := time.AfterFunc(5*time.Second, func() {
		db.cfg.Logger.Warn("another session has held the lock of migrations for 5s: select pid from pg_locks where locktype='advisory'")
	})
	defer slow.Stop()
	for {
		var locked bool
		if err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1, hashtext($2))", int32(migrateLock), db.cfg.Schema).Scan(&locked); err != nil || locked {
			return err
		}
		if !sleep(ctx, 200*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

// create makes the namespace, unless it was made for a role that may make none, and the table of versions.
func (db *DB) create(ctx context.Context, conn *pgx.Conn) error {
	var there bool
	err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname=$1)", db.cfg.Schema).Scan(&there)
	if err == nil && !there {
		_, err = conn.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+db.cfg.Schema)
	}
	if err == nil {
		_, err = conn.Exec(ctx, db.SQL("CREATE TABLE jobhost.schema (name text PRIMARY KEY, version int NOT NULL)"))
	}
	return err
}

// stepPause is how long others have a table to themselves for which a step has waited.
const stepPause = time.Second

// stepPatiently applies one step. A change of a table waits for sessions that read it, such as a dump, and later sessions,
// the leader's too, wait behind the change. So it soon gives up its place in the queue, lets the others pass, and tries again.
func (db *DB) stepPatiently(ctx context.Context, conn *pgx.Conn, s *Schema, i int) error {
	for {
		err := db.step(ctx, conn, s, i)
		if stateOf(err) != lockNotAvailable {
			return err
		}
		db.cfg.Logger.Warn("a migration waits for sessions that use the tables, such as a dump", "part", s.Name, logkey.Version, i+1)
		if !sleep(ctx, stepPause) {
			return context.Cause(ctx)
		}
	}
}

// step applies one step in a transaction.
func (db *DB) step(ctx context.Context, conn *pgx.Conn, s *Schema, i int) error {
	statements := slices.DeleteFunc(strings.Split(db.SQL(s.Steps[i]), ";"), func(s string) bool { return strings.TrimSpace(s) == "" })
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT set_config('lock_timeout', $1, true)", lockTime); err != nil {
			return err
		}
		for _, sql := range statements {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, db.SQL("INSERT INTO jobhost.schema VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET version=excluded.version"), s.Name, i+1)
		return err
	})
}
