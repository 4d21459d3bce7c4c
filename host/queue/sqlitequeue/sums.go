package sqlitequeue

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// The steps that give rows their checksums: see [sqlitedb.Sum]. Rows that were
// there before have none, so that a large store needs no minutes for it.
//
// None covers what changes in pieces and says nothing by itself: statuses, times,
// counters. Those of a job are in its column digest: see jobSums.
const (
	schemaSums = `
ALTER TABLE item ADD COLUMN sum INTEGER;
ALTER TABLE result ADD COLUMN sum INTEGER;
ALTER TABLE failure ADD COLUMN sum INTEGER;
ALTER TABLE log ADD COLUMN sum INTEGER;
ALTER TABLE dead ADD COLUMN sum INTEGER;
ALTER TABLE note ADD COLUMN sum INTEGER`
	effectsSums  = `ALTER TABLE kv ADD COLUMN sum INTEGER`
	workflowSums = `
ALTER TABLE definition ADD COLUMN sum INTEGER;
ALTER TABLE workflow ADD COLUMN sum INTEGER;
ALTER TABLE workflow_data ADD COLUMN sum INTEGER;
ALTER TABLE workflow_step ADD COLUMN failure_sum INTEGER`
	scheduleSums = `ALTER TABLE schedule ADD COLUMN sum INTEGER`
)

// jobSums is what the column digest holds: the digest of the job, and two
// checksums. One is of the payload, the other of all the rest that the job was
// submitted as, since a list reads that alone. They stand before the payload, so that
// damage of the payload's pages leaves them alone. In a row that was written before there
// were any, the digest is all, and the one that was usual then.
type jobSums [16 + 8 + 8]byte

// sumsOfJob returns those of a job, of which own is the reference that goes with it.
func sumsOfJob(key, worker int64, job *record.JobSpec, text texts, own string) (sums jobSums) {
	copy(sums[:16], job.Digest[:])
	binary.LittleEndian.PutUint64(sums[16:], uint64(contentSum("payload", key, job.Payload)))
	binary.LittleEndian.PutUint64(sums[24:], uint64(sums.head(key, worker, job, text, own)))
	return sums
}

// head is the checksum of all but the payload, of which the other one takes part.
func (sums *jobSums) head(key, worker int64, job *record.JobSpec, text texts, own string) int64 {
	s := sqlitedb.SumOf("job")
	s.Int(key).Text(job.ID).Int(worker).Int(int64(max(job.Tasks, 1))).Int(int64(job.Priority)).Int(int64(job.MaxAttempts)).
		Int(int64(job.Timeout)).Int(int64(job.CreatedAt)).Int(int64(job.ReadyAt)).Blob(sums[:24]).
		Text(job.Entry).Text(job.ContentType).Text(text.first).Text(text.options).Text(own)
	return s.Value()
}

// check returns what of a job is damaged, of which n bytes of the column were read:
// the job itself, or its payload if that is looked at.
func (sums *jobSums) check(n int, key, worker int64, job *record.JobSpec, text texts, payload bool) (head, content error) {
	switch {
	case n == len(job.Digest):
		return nil, nil
	case n != len(sums) || int64(binary.LittleEndian.Uint64(sums[24:])) != sums.head(key, worker, job, text, job.Ref):
		return sqlitedb.Damaged("job %s", job.ID), nil
	case payload && int64(binary.LittleEndian.Uint64(sums[16:])) != contentSum("payload", key, job.Payload):
		return nil, sqlitedb.Damaged("the payload of job %s", job.ID)
	}
	return nil, nil
}

// contentSum is of the bytes that a row of a table holds for a key: the payload of
// a job, or of a task, or its result, or a record of its failures.
func contentSum(table string, key int64, data []byte) int64 {
	s := sqlitedb.SumOf(table)
	return s.Int(key).Blob(data).Value()
}

// textSum is contentSum for a text.
func textSum(table string, key int64, text string) int64 {
	s := sqlitedb.SumOf(table)
	return s.Int(key).Text(text).Value()
}

func logSum(task, idx, attempt, dropped int64, text []byte) int64 {
	s := sqlitedb.SumOf("log")
	return s.Int(task).Int(idx).Int(attempt).Int(dropped).Blob(text).Value()
}

func noteSum(name, text string) int64 {
	s := sqlitedb.SumOf("note")
	return s.Text(name).Text(text).Value()
}

func deadSum(task, diedAt, attempts int64, category, code, severity, message string) int64 {
	s := sqlitedb.SumOf("dead")
	return s.Int(task).Int(diedAt).Int(attempts).Text(category).Text(code).Text(severity).Text(message).Value()
}

func kvSum(worker int64, key string, version, expires, changedAt int64, value []byte) int64 {
	s := sqlitedb.SumOf("kv")
	return s.Int(worker).Text(key).Int(version).Int(expires).Int(changedAt).Blob(value).Value()
}

func definitionSum(hash string, text []byte) int64 {
	s := sqlitedb.SumOf("definition")
	return s.Text(hash).Blob(text).Value()
}

// workflowSum is of what a workflow is, where it stands, and how it ended: empty
// for one that has not.
func workflowSum(w *record.WorkflowRecord, ending string) int64 {
	s := sqlitedb.SumOf("workflow")
	s.Int(int64(w.Key)).Text(w.ID).Text(w.Name).Text(w.Definition).Blob(w.Digest[:]).Int(int64(w.Depth)).
		Int(int64(w.Parent)).Text(w.ParentID).Text(w.ParentStep).Text(w.ParentMark).
		Int(int64(w.StartedAt)).Int(w.Retention.Milliseconds()).Text(ending).Blob(w.Record)
	for _, name := range slices.Sorted(maps.Keys(w.Labels)) {
		s.Text(name).Text(w.Labels[name])
	}
	return s.Value()
}

func dataSum(workflow, slot int64, data []byte) int64 {
	s := sqlitedb.SumOf("workflow_data")
	return s.Int(workflow).Int(slot).Blob(data).Value()
}

func stepSum(workflow, step int64, failure string) int64 {
	s := sqlitedb.SumOf("workflow_step")
	return s.Int(workflow).Int(step).Text(failure).Value()
}

func scheduleSum(state *record.ScheduleState, version int64, open, waiting string) int64 {
	s := sqlitedb.SumOf("schedule")
	return s.Text(state.Name).Int(version).Text(state.Timing).Int(int64(state.Last)).Int(int64(state.Fired)).
		Text(state.LastJob).Int(int64(state.PausedAt)).Int(int64(state.GoneAt)).Text(open).Text(waiting).Value()
}
