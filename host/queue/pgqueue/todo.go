package pgqueue

// Each of these goes to the file of its subject.

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

var errTodo = errors.New("not built yet")

type noRows struct{}

func (noRows) init(*pgdb.DB)          {}
func (noRows) Read(*pgx.Batch)        {}
func (noRows) Flush(*pgx.Batch) error { return nil }
func (noRows) Flushed()               {}
func (noRows) AfterCommit()           {}
func (noRows) AfterRollback()         {}

// kv.go, effects.go
type keyRows struct{ noRows }

func (*keyRows) load(*pgdb.Session) error { return nil }

func (b *batch) applyEffects(*pgdb.Tx, int64, *record.Settle, *record.OpResult) error { return errTodo }
func (b *batch) changeKV(*pgdb.Tx, *record.ChangeKV, *record.OpResult) error          { return errTodo }

// schedule.go
type scheduleRows struct{ noRows }

func (b *batch) fire(*pgdb.Tx, *record.Fire, *record.OpResult) error { return errTodo }

// workflow*.go
type workflowRows struct{ noRows }

func (b *batch) advance(_ *pgdb.Tx, t record.Transition, _ *record.OpResult) error {
	if t == nil {
		return nil
	}
	return errTodo
}

func (b *batch) deleteWorkflow(*pgdb.Tx, *pgdb.Session, *record.DeleteWorkflow, *record.OpResult) error {
	return errTodo
}

func (b *batch) tidyWorkflows(*pgdb.Tx, *pgdb.Session, *record.Tidy, *record.OpResult) (more bool, err error) {
	return false, nil
}

func (s *Store) ViewWorkflows(context.Context, func(record.WorkflowView) error) error { return errTodo }
func (s *Store) Workflows(context.Context, record.WorkflowQuery) ([]record.WorkflowRecord, error) {
	return nil, errTodo
}
func (s *Store) OpenWorkflows(context.Context) (map[string]int64, error)    { return nil, errTodo }
func (s *Store) OpenDefinitions(context.Context) (map[string][]byte, error) { return nil, errTodo }
