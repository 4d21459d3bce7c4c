package sqlitequeue

import (
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// schemaItems holds the payloads of the tasks of jobs that have one for each. A
// table of its own, so that what reads and rewrites tasks doesn't meet them.
const schemaItems = `CREATE TABLE item(task INTEGER PRIMARY KEY, data BLOB NOT NULL)`

// addItems keeps the payloads of the tasks of a job that was added.
func addItems(tx *sqlitedb.Tx, key int64, items [][]byte) error {
	for i, item := range items {
		if err := tx.Stmt("INSERT INTO item(task, data, sum) VALUES(?,?,?)").Int(key + int64(i)).Blob(item).
			Int(contentSum("item", key+int64(i), item)).Exec(); err != nil {
			return err
		}
	}
	return nil
}

// readItem returns the payload of a task of its own; it is never nil. whole = it is
// there, and what was written.
func readItem(q sqlitedb.Querier, task record.Key) (item []byte, whole bool, err error) {
	s := q.Stmt("SELECT data, sum FROM item WHERE task=?").Int(int64(task))
	if s.Step() {
		item = append([]byte{}, s.ColBlob(0)...)
		whole = s.ColSum(1, contentSum("item", int64(task), item))
	}
	return item, whole, s.Done()
}
