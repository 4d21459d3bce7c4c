package sqlitestate

import (
	"fmt"

	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/state"
)

// Exports returns the tables of states as package pgstate has them. States are checked while they are read.
func Exports() []sqlitedb.Export {
	columns := sqlitedb.Columns("job, task, tag text, status, version, at, event_id text, schema_version, message text, payload blob")
	return []sqlitedb.Export{
		{Table: "state_job", Columns: sqlitedb.Columns("name text, id, tasks, states, created_at, changed_at, deleted_at")},
		{Table: "state", Columns: columns, Shown: []string{"message"}, Sum: "sum", Check: checkRow},
	}
}

func checkRow(q sqlitedb.Querier, row []any, whole func(int64) bool) (string, error) {
	number := func(i int) int64 { return row[i].(int64) }
	text := func(i int) string { return row[i].(string) }
	id := number(0)
	st := &state.State{
		TaskID: int(number(1)), Tag: text(2), Status: int32(number(3)), Version: number(4), EventID: text(6),
		SchemaVersion: int(number(7)), Message: text(8), Payload: row[9].([]byte),
	}
	if whole(sumOf(id, st, number(5))) {
		return "", nil
	}
	return fmt.Sprintf("state %s of task %d of job %s", st.Tag, st.TaskID, jobOf(q, id)), nil
}
