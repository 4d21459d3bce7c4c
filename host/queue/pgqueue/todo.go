package pgqueue

// Each of these goes to the file of its subject.

import (
	"context"
	"errors"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

var errTodo = errors.New("not built yet")

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
