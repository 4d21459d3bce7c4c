package main

import (
	"context"
	"errors"
)

// system is a job system with a worker that does nothing. It reports every run
// and every durable end of a job to the ledger.
type system interface {
	// submit returns when the jobs with these numbers are acknowledged.
	submit(ctx context.Context, jobs []int) error
	// counts returns the system's own counts of its jobs.
	counts(ctx context.Context) (counts, error)
	// about describes how it was set up.
	about() about
	// close stops workers and connections.
	close(ctx context.Context) error
}

// errNoBatch is the error of a system that takes only one job per call.
var errNoBatch = errors.New("takes one job a call")

// counts are jobs by outcome.
type counts struct {
	Succeeded int64
	Open      int64 // waiting, running, or to be retried
	Failed    int64
}

// about is what a reader of the table should know about a system.
type about struct {
	Versions   string // of the system and its database
	Durability string // according to the database itself
	Settings   string // those that differ from the defaults
}

// target is where a system finds its database, and which process to measure.
type target struct {
	Address string // of the database; empty = there is none
	PID     int    // of the database's first process; 0 = there is none
	Dir     string // for files of the measuring process
}

// contender is how a system is set up.
type contender struct {
	// serve starts the database; nil = the system needs none.
	serve func(ctx context.Context, dir string) (*server, error)
	// open starts the system in this process.
	open func(ctx context.Context, at target, l *load, ledger *ledger) (system, error)
	// batches reports whether it takes several jobs per call.
	batches bool
}

// Names of the systems, as in flags and tables.
const (
	jobhostName       = "jobhost"
	sharedName        = "jobhost-postgres"
	riverName         = "river"
	asynqAlwaysName   = "asynq-always"
	asynqEverysecName = "asynq-everysec"
)

var contenders = map[string]contender{
	jobhostName:       {open: openJobhost, batches: true},
	sharedName:        {open: openJobhostOnPostgres, serve: servePostgres, batches: true},
	riverName:         {open: openRiver, serve: servePostgres, batches: true},
	asynqAlwaysName:   {open: openAsynq, serve: serveRedis("always")},
	asynqEverysecName: {open: openAsynq, serve: serveRedis("everysec")},
}

// systemNames are the names in the order of the table.
func systemNames() []string {
	return []string{jobhostName, sharedName, riverName, asynqAlwaysName, asynqEverysecName}
}
