package pgqueue

import (
	"encoding/json"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jobhost/jobhost/host/queue/record"
)

// jobColumns are those of a job joined with its worker, but for its payload.
const jobColumns = `seq, job.id, name, tasks, priority, max_attempts, timeout_ns, created_at, ready_at, digest, entry, content_type,
	labels, length(payload), options, ref`

// storedJob is what a row with jobColumns is scanned into.
type storedJob struct {
	record.JobRecord
	labels, options string
	digest          []byte

	// Of a row with parentColumns; NULL = no job has submitted it.
	parent                       *string
	parentKey, parentTask, depth *int64
}

// parentColumns say which task submitted a job; they need jobTables.
const (
	parentColumns = `parent, parent_key, child.task, depth`
	jobTables     = `jobhost.job JOIN jobhost.worker ON worker.id=job.worker LEFT JOIN jobhost.child ON child.job=job.seq`
)

// into returns what to scan the columns into, and more after them.
func (j *storedJob) into(more ...any) []any {
	return append([]any{
		&j.Key, &j.ID, &j.Worker, &j.JobSpec.Tasks, &j.Priority, &j.MaxAttempts, &j.Timeout, &j.CreatedAt, &j.ReadyAt, &j.digest, &j.Entry, &j.ContentType,
		&j.labels, &j.PayloadSize, &j.options, &j.Ref,
	}, more...)
}

// intoParent returns what to scan parentColumns into.
func (j *storedJob) intoParent() []any {
	return []any{&j.parent, &j.parentKey, &j.parentTask, &j.depth}
}

// record returns the job, and clears it for the next row.
func (j *storedJob) record() (*record.JobRecord, error) {
	r := j.JobRecord
	j.JobRecord = record.JobRecord{}
	r.SetDigest(j.digest)
	size, err := r.SetOptions(j.options)
	if err != nil {
		return nil, err
	}
	if size != nil {
		r.PayloadSize = int(min(*size, math.MaxInt))
	}
	if j.parent != nil {
		r.Parent = &record.Parent{ID: *j.parent, Key: record.Key(*j.parentKey), Task: int(*j.parentTask), Depth: int(*j.depth)}
	}
	return &r, r.SetLabels(j.labels)
}

// storedTask is what a row with shownColumns is scanned into.
type storedTask struct {
	record.TaskRecord
	job       record.Key
	retention int64
}

// shownColumns are the columns of a task that are shown to people.
const shownColumns = `seq, job, idx, status, attempt, ready_at, token, started_at, fuel, ended_at, result_size, ref, retention_ms`

func (t *storedTask) into() []any {
	return []any{
		&t.Key, &t.job, &t.Index, &t.Status, &t.Attempt, &t.ReadyAt, &t.Token, &t.StartedAt, &t.Fuel, &t.EndedAt, &t.ResultSize, &t.ResultRef, &t.retention,
	}
}

// addTo adds the task to its job.
func (t *storedTask) addTo(r *record.JobRecord) {
	r.Retention = millis(t.retention)
	r.Tasks = append(r.Tasks, t.TaskRecord)
}

// endOf returns when the last of a job's tasks ended, 0 = one is open.
func endOf(tasks []record.TaskRecord) (end record.Millis) {
	for i := range tasks {
		if tasks[i].Status == record.Open {
			return 0
		}
		end = max(end, tasks[i].EndedAt)
	}
	return end
}

// storable reports whether a text can be in a column. The server rejects queries for other texts with an error.
func storable(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

// CleanText returns a text that the server takes: in UTF-8, and without NUL. Guests choose some of what people read.
func CleanText(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\uFFFD"), "\uFFFD")
}

// jsonText writes a list or map of n entries as JSON, an empty one as "".
func jsonText(v any, n int) (string, error) {
	if n == 0 {
		return "", nil
	}
	text, err := json.Marshal(v)
	return string(text), err
}

// decode reads what jsonText wrote.
func decode(text string, into any) error {
	if text == "" {
		return nil
	}
	return json.Unmarshal([]byte(text), into)
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
