package pgqueue

import (
	"slices"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// A workflow is shown with the results of its steps, which are jobs or workflows. There may be hundreds of them, so they are
// read together.

// JobOutput implements [record.WorkflowView].
func (v *workflowView) JobOutput(id string, most int) (*record.JobOutput, error) {
	if v.steps != 0 && v.outputs == nil {
		if err := v.readOutputs(); err != nil {
			return nil, err
		}
	}
	if o := v.outputs[id]; o != nil && (o.data != nil || o.size == 0 || o.size > int64(most) || o.ref != "") {
		return o.output(int64(most)), nil
	}
	o, err := v.rows.outputs.Look(v.s, outputKey{id, int64(most)})
	if o == nil || err != nil {
		return nil, err
	}
	return o.output(int64(most)), nil
}

// Bounds of the results of all steps that are read together, in bytes: of one, and of all.
const (
	readOutput  = 64 << 10
	readOutputs = 1 << 20
)

// readOutputs reads the results of the workflow's jobs: the sizes of all, and the content of small ones up to readOutputs in all.
func (v *workflowView) readOutputs() error {
	v.outputs = map[string]*outputRow{}
	var id string
	var o outputRow
	return v.s.Each([]any{&id, &o.seq, &o.tasks, &o.size, &o.ref, &o.keys, &o.data}, func() error {
		row := o
		v.outputs[id] = &row
		o.keys, o.data = nil, nil
		return nil
	}, `WITH j AS (SELECT j.id, j.seq, j.tasks, s.size, s.ref, sum(s.size) FILTER (WHERE s.size<=$2) OVER (ORDER BY j.seq) AS total
			FROM jobhost.workflow_job w JOIN jobhost.job j ON j.seq=w.job
			CROSS JOIN LATERAL (SELECT coalesce(sum(result_size), 0)::bigint AS size, coalesce(max(ref), '') AS ref
				FROM jobhost.task WHERE seq>=j.seq AND seq<j.seq+j.tasks) s
			WHERE w.workflow=$1)
		SELECT j.id, j.seq, j.tasks, j.size, j.ref, r.keys, r.data
		FROM j CROSS JOIN LATERAL (SELECT array_agg(task) AS keys, array_agg(data) AS data
			FROM jobhost.result WHERE j.ref='' AND j.size<=$2 AND j.total<=$3 AND task>=j.seq AND task<j.seq+j.tasks) r`,
		int64(v.steps), int64(readOutput), int64(readOutputs))
}

// childRows are the workflows that are steps of another one, with data of theirs.
type childRows struct {
	byID map[string]*workflowRow
	keys []int64
	data map[slotKey][]byte
	read map[int64]bool // slots whose data were read
}

// Bounds of the workflows below another one that are read together: the latest ones, up to this number and these bytes of
// records.
const (
	readChildren = 1000
	readRecords  = 4 << 20
)

// childrenOfSteps returns the workflows that are steps of the one whose steps were read.
func (v *workflowView) childrenOfSteps() (*childRows, error) {
	switch {
	case v.steps == 0:
		return &childRows{}, nil
	case v.children != nil:
		return v.children, nil
	}
	c := &childRows{byID: map[string]*workflowRow{}, data: map[slotKey][]byte{}, read: map[int64]bool{}}
	var scan workflowScan
	err := v.s.Each(scan.into(), func() error {
		row := scan.row()
		c.byID[row.ID] = &row
		c.keys = append(c.keys, int64(row.Key))
		scan.Record = nil
		return nil
	}, `SELECT `+workflowColumns+` FROM (
			SELECT w.*, sum(octet_length(record)) OVER (ORDER BY seq DESC) AS total
			FROM (SELECT * FROM jobhost.workflow WHERE parent>0 AND parent=$1 ORDER BY parent DESC, seq DESC LIMIT $2) w) w
		WHERE total<=$3`, int64(v.steps), readChildren, readRecords)
	if err != nil {
		return nil, err
	}
	v.children = c
	return c, nil
}

// kept returns the data in a slot of one of the workflows. It reads the slot of all of them, if their data are small; nil = the
// data have to be read by themselves.
func (c *childRows) kept(s *pgdb.Session, key slotKey) ([]byte, error) {
	if c == nil || !slices.Contains(c.keys, key.workflow) {
		return nil, nil
	}
	if c.read[key.slot] {
		return c.data[key], nil
	}
	c.read[key.slot] = true
	var workflow int64
	var data []byte
	err := s.Each([]any{&workflow, &data}, func() error {
		c.data[slotKey{workflow, key.slot}] = notNil(data)
		data = nil
		return nil
	}, `SELECT workflow, data FROM (
			SELECT d.workflow, d.data, sum(octet_length(d.data)) OVER (ORDER BY d.workflow DESC) AS total
			FROM unnest($1::bigint[]) AS t(workflow) JOIN jobhost.workflow_data d ON d.workflow=t.workflow AND d.slot=$2
			WHERE octet_length(d.data)<=$3) d
		WHERE total<=$4`, c.keys, key.slot, readOutput, readOutputs)
	return c.data[key], err
}
