package pgqueue

// Each of these goes to the file of its subject.

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost"
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

func (s *Store) ViewWorkflows(context.Context, func(record.WorkflowView) error) error { return errTodo }
func (s *Store) Workflows(context.Context, record.WorkflowQuery) ([]record.WorkflowRecord, error) {
	return nil, errTodo
}
func (s *Store) OpenWorkflows(context.Context) (map[string]int64, error)    { return nil, errTodo }
func (s *Store) OpenDefinitions(context.Context) (map[string][]byte, error) { return nil, errTodo }

// control.go, tidy.go, dead.go, rewind.go, note.go, states.go
func (b *batch) cancel(*pgdb.Tx, *record.Cancel, *record.OpResult) error { return errTodo }
func (b *batch) revive(*pgdb.Tx, *record.Revive, *record.OpResult) error { return errTodo }
func (b *batch) delete(*pgdb.Tx, *pgdb.Session, *record.Delete, *record.OpResult) error {
	return errTodo
}
func (b *batch) tidy(*pgdb.Tx, *pgdb.Session, *record.Tidy, *record.OpResult) error  { return errTodo }
func (b *batch) bury(*pgdb.Tx, *record.Settle, int64, int64, *record.OpResult) error { return errTodo }
func rewind(*pgdb.Session, *record.Rewind) error                                     { return errTodo }
func note(*pgdb.Session, *record.Note) error                                         { return errTodo }
func noteStates(*pgdb.Session, *record.NoteStates) error                             { return errTodo }
func forgetStates(*pgdb.Session, *record.ForgetStates) error                         { return errTodo }

// read.go, list.go, dead_read.go, kv_read.go, object.go, states.go, schedule.go
func (s *Store) Job(context.Context, string) (record.JobRecord, error) {
	return record.JobRecord{}, errTodo
}
func (s *Store) Jobs(context.Context, record.ListQuery) ([]record.JobRecord, error) {
	return nil, errTodo
}
func (s *Store) Result(context.Context, record.Key) ([]byte, error) { return nil, errTodo }
func (s *Store) Results(context.Context, record.Key, int, int, int) ([]record.ResultRecord, error) {
	return nil, errTodo
}
func (s *Store) Logs(context.Context, record.Key) ([]record.LogRecord, error)   { return nil, errTodo }
func (s *Store) Counts(context.Context) (map[string]record.StatusCounts, error) { return nil, errTodo }
func (s *Store) Newest(context.Context) (record.Millis, error)                  { return 0, errTodo }
func (s *Store) Notes(context.Context) (map[string]string, error)               { return nil, errTodo }
func (s *Store) Dead(context.Context, record.DeadQuery) ([]record.DeadRecord, record.DeadPlace, error) {
	return nil, record.DeadPlace{}, errTodo
}
func (s *Store) Deaths(context.Context, record.Millis, record.Millis) ([]record.DeathRecord, error) {
	return nil, errTodo
}
func (s *Store) KV(context.Context, string, string, record.Millis) (record.KVEntry, error) {
	return record.KVEntry{}, errTodo
}
func (s *Store) KVList(context.Context, record.KVQuery) ([]record.KVEntry, error) {
	return nil, errTodo
}
func (s *Store) KVSize(context.Context, string, record.Millis) (int64, error) { return 0, errTodo }
func (s *Store) Family(context.Context, record.Key) (record.Family, error) {
	return record.Family{}, errTodo
}
func (s *Store) Gone(context.Context, string, int) ([]string, error)       { return nil, errTodo }
func (s *Store) Live(context.Context, []string) ([]bool, error)            { return nil, errTodo }
func (s *Store) StatesOf(context.Context, string) (bool, bool, error)      { return false, false, errTodo }
func (s *Store) StatesGone(context.Context, string, int) ([]string, error) { return nil, errTodo }

var _ = jobhost.MaxChildren
