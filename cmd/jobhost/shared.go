package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/host/queue/pgqueue"
	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/state/payload/pgpayload"
	"github.com/jobhost/jobhost/state/pgstate"
)

// sharedSchemas returns the tables of all stores that hosts share.
func sharedSchemas() []pgdb.Schema {
	return slices.Concat(pgqueue.Schemas(), pgstate.Schemas(), pgpayload.Schemas())
}

// openDatabase connects to the database that a manifest names.
func openDatabase(ctx context.Context, m *manifest.Manifest, logger *slog.Logger, observer pgdb.Observer) (*pgdb.DB, error) {
	return pgdb.Open(ctx, pgdb.Config{
		URL: m.Host.Store.URL, Password: m.Cluster.Password.Reveal(), Host: m.Cluster.Name, Lease: m.Cluster.Lease,
		Relaxed: m.Host.Durability == manifest.Relaxed, Logger: logger, Observer: observer,
	})
}

// shared has the stores of a term.
type shared struct {
	writer *pgdb.Writer
	jobs   *pgqueue.Store
	states *pgstate.Store
}

// openShared opens the stores of a term. Jobs and states share its writer, so that states cost no commit of their own.
func openShared(ctx context.Context, db *pgdb.DB, term *pgdb.Term) (_ *shared, err error) {
	s := &shared{}
	if s.writer, err = term.NewWriter(ctx); err != nil {
		return nil, err
	}
	if s.states, err = pgstate.New(ctx, db, term, s.writer); err == nil {
		s.jobs, err = pgqueue.New(ctx, db, term, s.writer, s.states)
	}
	if err != nil {
		s.writer.Close()
		return nil, err
	}
	return s, nil
}

// Close closes the stores and the writer.
func (s *shared) Close() error {
	err := errors.Join(s.states.Close(), s.jobs.Close())
	s.writer.Close()
	return err
}

// outdatedParts returns the parts that a migration would change.
func outdatedParts(versions []pgdb.Version) []pgdb.Version {
	return slices.DeleteFunc(slices.Clone(versions), func(v pgdb.Version) bool { return v.Have >= v.Want })
}

// newerParts returns the parts that a newer jobhost has made.
func newerParts(versions []pgdb.Version) []pgdb.Version {
	return slices.DeleteFunc(slices.Clone(versions), func(v pgdb.Version) bool { return v.Have <= v.Want })
}

// migrateAtStart creates the tables in a new database. It brings older ones up to date unless other hosts are running, which may
// know only the tables as they are.
func migrateAtStart(ctx context.Context, db *pgdb.DB) error {
	versions, err := db.Versions(ctx, sharedSchemas())
	if err != nil {
		return err
	}
	late := outdatedParts(versions)
	if len(late) > 0 && len(late) < len(versions) {
		if hosts := liveHosts(ctx, db); hosts > 0 {
			work := "1 host works"
			if hosts > 1 {
				work = fmt.Sprintf("%d hosts work", hosts)
			}
			return &jobhost.Error{
				Code: jobhost.CodeConflict, Field: "store", Message: "the database has the tables of an older jobhost, and " + work + " with them",
				Hint: "jobhost migrate brings it up to date; the hosts that run go on as long as they know its tables",
			}
		}
	}
	return db.Migrate(ctx, sharedSchemas()) // it refuses what a newer jobhost has made
}

// liveHosts returns how many hosts are running. If they can't be listed there are none, since their table may not exist yet.
func liveHosts(ctx context.Context, db *pgdb.DB) (live int) {
	hosts, _ := db.Hosts(ctx)
	for i := range hosts {
		if hosts[i].Seen < pgdb.LostTime {
			live++
		}
	}
	return live
}
