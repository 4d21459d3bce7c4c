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

// RemoveEvicted deletes the rows of jobs that were evicted.
const RemoveEvicted = removeEvicted

// VictimsSQL returns the statements that read jobs which may be evicted: the first ones of a worker, and single ones.
func VictimsSQL() (list, single string) {
	var r evictRows
	r.init(nil)
	return r.lists.SQL, r.single.SQL
}

// SetAges sets of how many ages there are rows of counters, and how many times those of one age are written. It is for a
// store without changes.
func (s *Store) SetAges(most int64, ofOne int) {
	s.image.ledger.ages.most, s.image.ledger.ages.ofOne = most, ofOne
}
