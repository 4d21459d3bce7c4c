package queuetest

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// model is the contract of [record.Store] as plainly as it can be written.
type model struct {
	jobs map[string]*modelJob
	next record.Key // no key below it may be given out any more

	notes     map[string]string
	keys      map[string]*modelKeys // by worker
	schedules map[string]record.ScheduleState
	uniq      map[string]record.Key        // the last job by worker/key
	dead      map[record.DeathRecord]int64 // deaths, by all but their number
	objects   map[string]string            // references to objects by name
	gone      map[string]string            // those whose rows were removed
	noted     map[string]bool              // ids of which there are states elsewhere
	stateless map[string]bool              // those of them whose jobs were removed
	results   int                          // references to results that were drawn
}

type modelJob struct {
	spec     record.JobSpec
	tasks    []modelTask
	failures []jobhost.Failure
	logs     []record.LogRecord
}

type modelTask struct {
	record.TaskRecord
	deadline record.Millis
	expires  record.Millis
	suspect  bool
	letter   *record.DeadRecord // since it died, until it dies again
	result   []byte
}

func newModel(next record.Key) *model {
	return &model{
		jobs: make(map[string]*modelJob), next: next,
		notes: make(map[string]string), keys: make(map[string]*modelKeys),
		uniq:      make(map[string]record.Key),
		dead:      make(map[record.DeathRecord]int64),
		objects:   make(map[string]string),
		gone:      make(map[string]string),
		noted:     make(map[string]bool),
		stateless: make(map[string]bool),
		schedules: make(map[string]record.ScheduleState),
	}
}

func (m *model) code(code jobhost.Code) record.OpResult {
	return record.OpResult{Err: &jobhost.Error{Code: code}}
}

// apply makes a change and returns what the store should say. The store's own
// answer is needed for the keys, which it is free to choose within the rules.
func (m *model) apply(op record.Op, got record.OpResult) (record.OpResult, error) {
	switch op := op.(type) {
	case *record.Submit:
		return m.submit(op.Job, got.Key)
	case *record.Settle:
		res, err := m.settle(op, got)
		if err != nil || op.Then == nil || res.Err != nil || op.Status == record.Open {
			return res, err
		}
		return m.then(op.Then, res, got)
	case *record.Cancel:
		res := m.cancel(op)
		if op.Then == nil || len(res.Tasks) == 0 {
			return res, nil
		}
		return m.then(op.Then, res, got)
	case *record.Revive:
		return m.revive(op), nil
	case *record.Delete:
		return m.delete(op), nil
	case *record.Rewind:
		return m.rewind(op), nil
	case *record.Note:
		m.notes[op.Name] = op.Text
		if op.Text == "" {
			delete(m.notes, op.Name)
		}
		return record.OpResult{}, nil
	case *record.ChangeKV:
		return record.OpResult{Err: m.changeKV(op.Worker, op.Changes, op.At, op.Quota)}, nil
	case *record.Fire:
		return m.fire(op, got)
	case *record.Tidy:
		return m.tidy(op), nil
	case *record.Forget:
		m.forget(op)
		return record.OpResult{}, nil
	}
	if m.changeStates(op) {
		return record.OpResult{}, nil
	}
	return record.OpResult{}, fmt.Errorf("unknown operation %T", op)
}

// then adds the jobs that come with an operation that ended a task.
func (m *model) then(follow func(record.End) []*record.JobSpec, res, got record.OpResult) (record.OpResult, error) {
	for _, job := range follow(record.End{Job: res.JobEnded, Final: res.Final}) {
		key := m.next
		if n := len(res.Then); n < len(got.Then) {
			key = got.Then[n].Key
		}
		added, err := m.submit(job, key)
		if err != nil {
			return res, err
		}
		if added.Err == nil && !added.Existing {
			job.Key = added.Key
			res.Then = append(res.Then, job)
		}
	}
	return res, nil
}

func (m *model) submit(spec *record.JobSpec, key record.Key) (record.OpResult, error) {
	if job := m.jobs[spec.ID]; job != nil {
		if job.spec.Digest != spec.Digest {
			return m.code(jobhost.CodeConflict), nil
		}
		return record.OpResult{Key: job.spec.Key, Existing: true}, nil
	}
	if existing := m.unique(spec); existing != nil {
		return record.OpResult{Key: existing.Key, ID: existing.ID, Existing: true}, nil
	}
	if !m.room(spec.Parent, 1) {
		return m.code(jobhost.CodeExhausted), nil
	}
	if m.refTaken(spec.Ref) {
		return m.code(jobhost.CodeConflict), nil
	}
	if key < m.next {
		return record.OpResult{}, fmt.Errorf("job %s got key %d, below %d", spec.ID, key, m.next)
	}
	job := &modelJob{spec: *spec}
	job.spec.Key = key
	for i := range spec.Tasks {
		job.tasks = append(job.tasks, modelTask{TaskRecord: record.TaskRecord{
			Key: key + record.Key(i), Index: i, ReadyAt: spec.ReadyAt,
		}, deadline: spec.Deadline})
	}
	m.jobs[spec.ID] = job
	m.addRef(spec.Ref)
	if spec.UniqueKey != "" {
		m.uniq[spec.Worker+"/"+spec.UniqueKey] = key
	}
	m.next = key + record.Key(spec.Tasks)
	return record.OpResult{Key: key}, nil
}

// unique returns the job that keeps another one out by its key.
func (m *model) unique(spec *record.JobSpec) *record.JobSpec {
	for _, job := range m.jobs {
		until := job.spec.UniqueUntil
		if spec.UniqueKey != "" && job.spec.Key == m.uniq[spec.Worker+"/"+spec.UniqueKey] && (until == 0 || until > spec.CreatedAt) {
			return &job.spec
		}
	}
	return nil
}

// task returns the task of a key and its job.
func (m *model) task(key record.Key) (*modelJob, *modelTask) {
	for _, job := range m.jobs {
		if i := key - job.spec.Key; i >= 0 && i < record.Key(len(job.tasks)) {
			return job, &job.tasks[i]
		}
	}
	return nil, nil
}

func (m *model) settle(op *record.Settle, got record.OpResult) (record.OpResult, error) {
	job, task := m.task(op.Key)
	if task == nil || task.Status != record.Open || task.Token != op.Token {
		return record.OpResult{Err: record.ErrFenced}, nil
	}
	var res record.OpResult
	if op.Effects != nil && op.Status == record.Succeeded {
		var err error
		if res, err = m.effects(job.spec.Worker, op, got); err != nil || res.Err != nil {
			return res, err
		}
	}
	if op.Failure != nil {
		job.failures = append(job.failures, *op.Failure)
	}
	if len(op.Log) > 0 || op.LogDropped > 0 {
		job.logs = append(job.logs, record.LogRecord{Task: task.Index, Attempt: op.Number, Text: op.Log, Dropped: op.LogDropped})
	}
	task.Attempt, task.StartedAt = op.Attempt, op.StartedAt
	task.Fuel += op.Fuel
	task.Token++
	task.suspect = task.suspect || op.Suspect
	if op.Status == record.Open {
		task.ReadyAt = op.ReadyAt
		return res, nil
	}
	task.Status, task.EndedAt, task.expires = op.Status, op.EndedAt, op.ExpiresAt
	if op.Status == record.Succeeded {
		task.ResultSize, task.result = len(op.Result), op.Result
		if op.ResultRef != "" {
			task.ResultSize, task.ResultRef = int(op.ResultSize), op.ResultRef
			m.addRef(op.ResultRef)
		}
	}
	if op.Status == record.Dead {
		m.bury(job, task, op)
	}
	if op.Status == record.Dead && op.MaxDead > 0 {
		evicted := m.evict(job, op.MaxDead)
		res.Removed, res.Evicted = evicted.Removed, evicted.Evicted
		res.Gone = res.Removed > 0 && m.anyGone()
	}
	return job.ended(res), nil
}

// counts returns the numbers of a job's tasks.
func (j *modelJob) counts() (c record.StatusCounts) {
	for i := range j.tasks {
		c[j.tasks[i].Status]++
	}
	return c
}

// only returns the tasks of those indexes, in order; nil = all.
func (j *modelJob) only(indexes []int) (chosen []*modelTask, ok bool) {
	for i := range j.tasks {
		if indexes == nil || slices.Contains(indexes, i) {
			chosen = append(chosen, &j.tasks[i])
		}
	}
	ok = !slices.ContainsFunc(indexes, func(i int) bool { return i < 0 || i >= len(j.tasks) })
	return chosen, ok
}

func countTasks(tasks []*modelTask) (c record.StatusCounts) {
	for _, t := range tasks {
		c[t.Status]++
	}
	return c
}

// ended adds to the result of a change that ended tasks whether the job has.
func (j *modelJob) ended(res record.OpResult) record.OpResult {
	if c := j.counts(); c[record.Open] == 0 {
		res.JobEnded, res.Final = true, c
	}
	return res
}

func (j *modelJob) changed(t *modelTask) record.Changed {
	return record.Changed{
		Key: t.Key, Index: t.Index, Level: j.spec.Priority.Level(), Group: j.spec.Group(), Attempt: t.Attempt, ReadyAt: t.ReadyAt, Token: t.Token,
	}
}

func (m *model) cancel(op *record.Cancel) record.OpResult {
	job := m.jobs[op.ID]
	if job == nil {
		return m.code(jobhost.CodeNotFound)
	}
	res := record.OpResult{Key: job.spec.Key, Worker: job.spec.Worker}
	chosen, ok := job.only(op.Tasks)
	if !ok {
		return m.code(jobhost.CodeNotFound)
	}
	if c := countTasks(chosen); c[record.Open] == 0 {
		if c[record.Cancelled] == 0 {
			return m.code(jobhost.CodeConflict)
		}
		return res
	}
	for _, t := range chosen {
		if t.Status == record.Open {
			res.Tasks = append(res.Tasks, job.changed(t))
			t.Status, t.EndedAt, t.expires = record.Cancelled, op.At, op.ExpiresAt
			t.Token++
		}
	}
	return job.ended(res)
}

func (m *model) revive(op *record.Revive) record.OpResult {
	job := m.jobs[op.ID]
	if job == nil {
		return m.code(jobhost.CodeNotFound)
	}
	chosen, ok := job.only(op.Tasks)
	if !ok {
		return m.code(jobhost.CodeNotFound)
	}
	res := record.OpResult{Key: job.spec.Key, Worker: job.spec.Worker}
	for _, t := range chosen {
		if t.Status == record.Dead || t.Status == record.Cancelled {
			if t.letter != nil && t.letter.RevivedAt == 0 {
				t.letter.RevivedAt = op.At
			}
			t.Status, t.Attempt, t.ReadyAt, t.EndedAt, t.expires = record.Open, 0, op.At, 0, 0
			t.deadline = 0
			t.Token++
			res.Tasks = append(res.Tasks, job.changed(t))
		}
	}
	if len(res.Tasks) == 0 {
		return m.code(jobhost.CodeConflict)
	}
	return res
}

func (m *model) delete(op *record.Delete) record.OpResult {
	job := m.jobs[op.ID]
	switch {
	case job == nil:
		return m.code(jobhost.CodeNotFound)
	case job.counts()[record.Open] > 0:
		return m.code(jobhost.CodeConflict)
	}
	m.remove(job)
	return record.OpResult{Key: job.spec.Key, Worker: job.spec.Worker, Gone: m.anyGone()}
}

// record is what the store should tell of a job.
func (j *modelJob) record() record.JobRecord {
	r := record.JobRecord{JobSpec: j.spec, PayloadSize: len(j.spec.Payload) + int(j.spec.ItemBytes()), Failures: j.failures}
	r.Items = nil // not loaded
	for i := range j.tasks {
		r.Tasks = append(r.Tasks, j.tasks[i].TaskRecord)
		r.EndedAt = max(r.EndedAt, j.tasks[i].EndedAt)
	}
	if j.counts()[record.Open] > 0 {
		r.EndedAt = 0
	}
	return r
}

// list is what the store should answer to a query.
func (m *model) list(q *record.ListQuery) []record.JobRecord {
	var out []record.JobRecord
	for _, job := range m.jobs {
		r := job.record()
		r.Payload, r.Failures = nil, nil
		if matches(&r, q) && (q.Below == 0 || r.Key < q.Below) && (q.Keys == nil || slices.Contains(q.Keys, r.Key)) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b record.JobRecord) int { return cmp.Compare(b.Key, a.Key) })
	return out[:min(len(out), q.Limit)]
}

// claim is what the store should lease.
func (m *model) claim(worker string, after record.Place, limit int) []record.Claimed {
	var out []record.Claimed
	for _, job := range m.jobs {
		for i := range job.tasks {
			t := &job.tasks[i]
			place := record.Place{ReadyAt: t.ReadyAt, Key: t.Key}
			if job.spec.Worker == worker && t.Status == record.Open && comparePlaces(place, after) > 0 {
				out = append(out, record.Claimed{
					Place: place, Index: t.Index, Attempt: t.Attempt, Level: job.spec.Priority.Level(), Group: job.spec.Group(), Token: t.Token, Deadline: t.deadline,
				})
			}
		}
	}
	slices.SortFunc(out, func(a, b record.Claimed) int { return comparePlaces(a.Place, b.Place) })
	return out[:min(len(out), limit)]
}

func comparePlaces(a, b record.Place) int {
	return cmp.Or(cmp.Compare(a.ReadyAt, b.ReadyAt), cmp.Compare(a.Key, b.Key))
}

// counts is what the store should count.
func (m *model) counts() map[string]record.StatusCounts {
	out := make(map[string]record.StatusCounts)
	for _, job := range m.jobs {
		c := out[job.spec.Worker]
		for status, n := range job.counts() {
			c[status] += n
		}
		out[job.spec.Worker] = c
	}
	return out
}
