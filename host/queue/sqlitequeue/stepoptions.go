package sqlitequeue

import (
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// schemaItems holds the payloads of the tasks of jobs that have one for each. A
// table of its own, so that what reads and rewrites tasks doesn't meet them.
const schemaItems = `CREATE TABLE item(task INTEGER PRIMARY KEY, data BLOB NOT NULL)`

// retry is a [jobhost.RetryPolicy] as it is kept: the names are stored.
type retry struct {
	MaxAttempts int             `json:"max_attempts,omitempty"`
	Backoff     jobhost.Backoff `json:"backoff,omitempty"`
	Initial     time.Duration   `json:"initial_ns,omitempty"`
	Multiplier  float64         `json:"multiplier,omitempty"`
	Increment   time.Duration   `json:"increment_ns,omitempty"`
	Max         time.Duration   `json:"max_ns,omitempty"`
	Jitter      float64         `json:"jitter,omitempty"`
}

func retryOf(p *jobhost.RetryPolicy) *retry { return (*retry)(p) }

func (r *retry) policy() *jobhost.RetryPolicy { return (*jobhost.RetryPolicy)(r) }

// breaker is a [jobhost.BreakerPolicy] as it is kept: the names are stored.
type breaker struct {
	Key      string           `json:"key"`
	Failures int              `json:"failures,omitempty"`
	Timeout  time.Duration    `json:"timeout_ns,omitempty"`
	Probes   int              `json:"probes,omitempty"`
	WhenOpen jobhost.WhenOpen `json:"when_open,omitempty"`
}

func breakerOf(p *jobhost.BreakerPolicy) *breaker { return (*breaker)(p) }

func (b *breaker) policy() *jobhost.BreakerPolicy { return (*jobhost.BreakerPolicy)(b) }

// itemBytes returns the sum of the sizes of a job's items; nil = it has none.
func itemBytes(job *record.JobSpec) *int64 {
	if job.Items == nil {
		return nil
	}
	n := job.ItemBytes()
	return &n
}

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
