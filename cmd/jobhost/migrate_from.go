package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/host/queue/pgqueue"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/state/pgstate"
	"github.com/jobhost/jobhost/state/sqlitestate"
)

// migration is what the command line says of a move from SQLite.
type migration struct {
	From    string   // sqlite:DIR
	Folders []string // NAME=DIR, of payload stores
	Check   bool     // nothing is written
}

// move copies a store on SQLite into PostgreSQL.
type move struct {
	dir      string
	source   *sqlitedb.Source
	db       *pgdb.DB
	payloads *payloadMove
	moved    moved
	failure  error // see fail
}

// moved is what was copied.
type moved struct {
	From         string           `json:"from"`
	To           string           `json:"to"`
	Rows         map[string]int64 `json:"rows"`
	Payloads     int64            `json:"payloads"`
	PayloadBytes int64            `json:"payload_bytes"`
	PayloadsKept int64            `json:"payloads_kept"` // they stay where they are
	Token        bool             `json:"token"`         // of the API
	Texts        int64            `json:"texts"`         // that were cleaned, since the database doesn't take them as they are
	Written      bool             `json:"written"`
	Took         jobhost.Duration `json:"took"`

	damages sqlitedb.Damages
}

// migrateFrom moves the store of a host on SQLite into the database of a manifest.
func migrateFrom(ctx context.Context, e *env, m *manifest.Manifest, how migration) (err error) {
	if m.Host.Store.Driver != manifest.Postgres {
		return &jobhost.Error{
			Code: jobhost.CodeInvalid, Field: "host.store", Message: "the store of the manifest is not in PostgreSQL",
			Hint: `set host.store to "postgres://USER@HOST/DATABASE", where the jobs are to be`,
		}
	}
	dir, ok := strings.CutPrefix(how.From, "sqlite:")
	if !ok || dir == "" {
		return jobhost.Invalid("from", "", "%.80q is no store on SQLite: say sqlite:DIR", how.From)
	}
	folders, err := payloadFolders(e, how.Folders)
	if err != nil {
		return err
	}
	v := &move{dir: e.path(dir)}
	began := time.Now()
	if v.source, err = sqlitedb.OpenSource(v.dir, schemas()); err != nil {
		return fmt.Errorf("open %s: %w", v.dir, err)
	}
	defer func() { err = errors.Join(err, v.source.Close()) }()
	logger := newLogger(e.stderr, slog.LevelWarn, m.Host.LogFormat)
	if v.db, err = openDatabase(ctx, m, logger, pgdb.Observer{}); err != nil {
		return err
	}
	defer v.db.Close()
	if v.payloads, err = planPayloads(v, m, folders, logger); err != nil {
		return v.source.Explain(err)
	}
	defer func() { err = errors.Join(err, v.payloads.close()) }()
	if how.Check {
		err = v.check(ctx)
	} else {
		err = v.run(ctx)
	}
	if v.moved.damages.Rows > 0 {
		storeEnv{e}.tellDamages(&v.moved.damages)
	}
	if err != nil {
		return fmt.Errorf("move %s: %w", v.dir, v.source.Explain(err))
	}
	v.moved.From, v.moved.To, v.moved.Took = v.dir, m.Host.Store.URL, jobhost.Duration(time.Since(began))
	return e.tellMoved(&v.moved)
}

// check reads everything that would be copied.
func (v *move) check(ctx context.Context) error {
	if err := v.refuseHosts(ctx); err != nil {
		return err
	}
	versions, err := v.db.Versions(ctx, sharedSchemas())
	if err != nil {
		return err
	}
	if len(outdatedParts(versions)) == 0 { // otherwise there are no tables, or older ones
		if err := v.db.Read(ctx, refuseOccupied); err != nil {
			return err
		}
	}
	if err := v.payloads.each(ctx, v.source, v.payloads.look); err != nil {
		return err
	}
	v.begin()
	for _, e := range exports() {
		if _, err := v.read(ctx, &e, func(next func() ([]any, error)) error {
			for row, err := next(); row != nil || err != nil; row, err = next() {
				if err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return v.because(err)
		}
	}
	return v.refuseDamaged()
}

// run copies everything, in a term of its own, so that no host can lead meanwhile.
func (v *move) run(ctx context.Context) (err error) {
	if err := v.refuseHosts(ctx); err != nil {
		return err
	}
	if err := v.db.Migrate(ctx, sharedSchemas()); err != nil {
		return err
	}
	term, err := v.acquire(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if released := term.Release(context.WithoutCancel(ctx)); err == nil {
			err = released
		}
	}()
	if err := v.db.Read(ctx, refuseOccupied); err != nil {
		return err
	}
	if err := v.payloads.each(ctx, v.source, v.payloads.copy); err != nil {
		return err
	}
	return v.rows(ctx, term)
}

// rows copies the rows of all tables.
func (v *move) rows(ctx context.Context, term *pgdb.Term) error {
	writer, err := term.NewWriter(ctx)
	if err != nil {
		return err
	}
	defer writer.Close()
	f := &filling{move: v, ctx: ctx, done: make(chan error, 1)}
	writer.Write(f)
	if err := <-f.done; err != nil {
		return v.because(err)
	}
	v.moved.Written = true
	return nil
}

// refuseHosts refuses a database that hosts use.
func (v *move) refuseHosts(ctx context.Context) error {
	hosts, _ := v.db.Hosts(ctx) // if they can't be listed, there are no tables yet
	var names []string
	for i := range hosts {
		if hosts[i].Seen < pgdb.LostTime {
			names = append(names, hosts[i].Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return &jobhost.Error{
		Code: jobhost.CodeConflict, Field: "host.store", Message: "the database is in use by " + strings.Join(names, ", "),
		Hint: "stop all hosts of the cluster first, and start them when the store is moved",
	}
}

// acquire begins a term. It waits for the lease of a host that was killed to expire, but not for another move to end.
func (v *move) acquire(ctx context.Context) (*pgdb.Term, error) {
	busy := &jobhost.Error{
		Code: jobhost.CodeConflict, Field: "host.store", Message: "the database has a leader that doesn't end",
		Hint: "stop all hosts of the cluster, and any other jobhost migrate --from",
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 2*v.db.Lease(), busy)
	defer cancel()
	return v.db.Acquire(ctx)
}

// refuseOccupied refuses a database that isn't empty.
func refuseOccupied(s *pgdb.Session) error {
	what, err := pgqueue.Occupied(s)
	if err == nil && what == "" {
		var there bool
		if there, err = pgstate.Occupied(s); there {
			what = "states"
		}
	}
	if err != nil || what == "" {
		return err
	}
	return &jobhost.Error{
		Code: jobhost.CodeConflict, Field: "host.store", Message: fmt.Sprintf("there are %s in the database already", what),
		Hint: "name an empty database. If the store was moved before, nothing is left to do: start the host",
	}
}

// exports are the tables of the store.
func exports() []sqlitedb.Export { return slices.Concat(sqlitequeue.Exports(), sqlitestate.Exports()) }

// apiToken returns the token in the folder of the store; nil = there is none.
func (v *move) apiToken() ([]byte, error) {
	path := filepath.Join(v.dir, "token")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	token, err := api.LoadOrCreateToken(path)
	return []byte(token), err
}

// tellMoved prints what was copied.
func (e *env) tellMoved(m *moved) error {
	if e.wantsJSON() {
		return e.json(m)
	}
	verb := "moved"
	if !m.Written {
		verb = "can be moved:"
	}
	count := func(n int64, one string) string { return fmt.Sprintf("%d %s", n, one) }
	parts := []string{
		count(m.Rows["job"], "jobs"), count(m.Rows["task"], "tasks"), count(m.Rows["dead"], "dead letters"), count(m.Rows["workflow"], "workflows"),
		count(m.Rows["kv"], "keys"), count(m.Rows["schedule"], "schedules"), count(m.Rows["state"], "states"), count(m.Payloads, "payloads"),
	}
	_, err := fmt.Fprintf(e.stdout, "%s %s, in %v\n", verb, strings.Join(parts, ", "), time.Duration(m.Took).Round(time.Millisecond))
	if m.PayloadsKept > 0 {
		e.note("%d payloads stay in the stores of the manifest where they are", m.PayloadsKept)
	}
	if n := m.Rows["states_noted"]; n > 0 {
		e.note("the states of %d jobs are in Firestore and stay there: hosts on PostgreSQL keep states in the database", n)
	}
	if m.Texts > 0 {
		e.note("%d texts have characters that PostgreSQL doesn't take, which were replaced", m.Texts)
	}
	if !m.Written {
		return err
	}
	if !m.Token {
		e.note("there is no token in %s: the first host puts that of its own token file into the database", printable(m.From))
	}
	e.note("the counts and sums of all tables are those of the store")
	e.note("%s is as it was. Start no host on it any more: it would run the same jobs", printable(m.From))
	return err
}
