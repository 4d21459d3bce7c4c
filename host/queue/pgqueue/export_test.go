package pgqueue

import (
	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/host/queue/record"
)

// What plans are looked at of.
const (
	ClaimTasks = claimTasks
	LoadJobs   = loadJobs
	LoadTasks  = loadTasks
	TasksByKey = tasksByKey
	ByID       = tasksByID
	FailedByID = failuresByID
	Results    = resultsByJob
	Logs       = logsByJob
	ListKeys   = listKeys
	SizeOfKeys = sizeOfKeys
	FamilyOf   = familyOf
	PageOfKeys = pageOfKeys + selectPage
)

// ListSQL returns the statement of a list of jobs.
func ListSQL(q *record.ListQuery) (string, pgx.NamedArgs) {
	sql, args := pageSQL(q)
	return sql + selectPage, args
}

// WorkflowsSQL returns the statement of a list of workflows.
func WorkflowsSQL(q *record.WorkflowQuery) (string, []any) { return listWorkflows(q) }

// DeadSQL returns the statement of a piece of a list of dead letters.
func DeadSQL(q *record.DeadQuery, n int) (string, pgx.NamedArgs) {
	l := &deadList{q: q, below: q.Below}
	l.begin()
	return deadSQL(q), deadArgs(q, l.below, n)
}
