package sqlitequeue

import (
	"errors"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// idOf returns the id of a workflow.
func (v workflowView) idOf(key record.Key) (id string) {
	s := v.q.Stmt("SELECT id FROM workflow WHERE seq=?").Int(int64(key))
	if s.Step() {
		id = s.ColText(0)
	}
	_ = s.Done() // it is for an error that matters more
	return id
}

// slotName says what a slot of a workflow's data holds.
func slotName(slot int) string {
	switch slot {
	case -1:
		return "the input"
	case -2:
		return "the output"
	}
	return "a signal"
}

// JobOutput implements [record.WorkflowView].
func (v workflowView) JobOutput(id string, most int) (*record.JobOutput, error) {
	s := v.q.Stmt("SELECT seq, tasks FROM job WHERE id=?").Text(id)
	if !s.Step() {
		return nil, s.Done()
	}
	key, out := s.ColInt(0), &record.JobOutput{Tasks: int(s.ColInt(1))}
	if err := s.Done(); err != nil {
		return nil, err
	}
	s = v.q.Stmt("SELECT sum(result_size), max(ref) FROM task WHERE seq>=? AND seq<?").Int(key).Int(key + int64(out.Tasks))
	if s.Step() {
		out.Size, out.Ref = s.ColInt(0), s.ColText(1)
	}
	if err := s.Done(); err != nil || out.Ref != "" || out.Size > int64(most) {
		return out, err
	}
	s = v.q.Stmt(selectResult + " WHERE task.seq>=? AND task.seq<? ORDER BY task.seq").Int(key).Int(key + int64(out.Tasks))
	for s.Step() {
		r, err := scanResult(s)
		if err != nil {
			_ = s.Done() // which has no error that matters more
			return nil, err
		}
		out.Results = append(out.Results, r.Data)
	}
	return out, s.Done()
}

// JobFailure implements [record.WorkflowView].
func (v workflowView) JobFailure(id string) (*jobhost.Failure, error) {
	s := v.q.Stmt("SELECT seq, tasks FROM job WHERE id=?").Text(id)
	if !s.Step() {
		return nil, s.Done()
	}
	low, high := s.ColInt(0), s.ColInt(0)+s.ColInt(1)
	if err := s.Done(); err != nil {
		return nil, err
	}
	s = v.q.Stmt("SELECT seq FROM task WHERE seq>=? AND seq<? AND status=2 ORDER BY seq LIMIT 1").Int(low).Int(high)
	if !s.Step() {
		return nil, s.Done()
	}
	task := s.ColInt(0)
	if err := s.Done(); err != nil {
		return nil, err
	}
	s = v.q.Stmt("SELECT record, sum, task FROM failure WHERE task=? ORDER BY seq DESC LIMIT 1").Int(task)
	if !s.Step() {
		return nil, s.Done()
	}
	f, err := scanFailure(s, low)
	return f, errors.Join(s.Done(), err)
}
