package queue

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/state/payload"
)

// Submit admits a job and returns when it is durable. When ctx ends before
// that, the error is its cause and the job may or may not be there: submitting
// it again with the same id is safe.
func (q *Queue) Submit(ctx context.Context, spec jobhost.Spec) (jobhost.Receipt, error) {
	job, l, err := q.prepare(ctx, &spec, fromOutside)
	if err != nil {
		return q.existing(ctx, &spec, job, err)
	}
	return q.commitSubmit(ctx, job, l)
}

// commitSubmit makes an admitted job durable.
func (q *Queue) commitSubmit(ctx context.Context, job *JobSpec, l *lane) (jobhost.Receipt, error) {
	answer := make(chan jobhost.Submitted, 1)
	q.inflight.Add(1)
	q.store.Commit([]Op{&Submit{Job: job}}, func(results []OpResult, err error) {
		defer q.inflight.Done()
		if err != nil {
			results = []OpResult{{Err: err}}
		}
		answer <- q.submitted(l, job, results[0])
	})
	select {
	case a := <-answer:
		q.stateOfExisting(ctx, &a)
		return a.Receipt, a.Err
	case <-ctx.Done():
		return jobhost.Receipt{}, context.Cause(ctx)
	}
}

// existing answers a job that there is no room for: if it is there already,
// that is no news and needs no room. Everything else stays refused.
func (q *Queue) existing(ctx context.Context, spec *jobhost.Spec, job *JobSpec, refusal error) (jobhost.Receipt, error) {
	if job == nil || spec.ID == "" {
		return jobhost.Receipt{}, refusal
	}
	record, err := q.store.Job(ctx, job.ID)
	switch {
	case jobhost.CodeOf(err) == jobhost.CodeNotFound:
		return jobhost.Receipt{}, refusal
	case err != nil:
		return jobhost.Receipt{}, fmt.Errorf("submit: %w", err)
	case !job.Repeats(&record.JobSpec):
		return jobhost.Receipt{}, fmt.Errorf("submit: %w", TakenID(job.ID))
	}
	return jobhost.Receipt{ID: job.ID, State: q.describe(record).State, Deduplicated: true}, nil
}

// stateOfExisting fills in where the job stands that was there before.
func (q *Queue) stateOfExisting(ctx context.Context, a *jobhost.Submitted) {
	if !a.Receipt.Deduplicated {
		return
	}
	job, err := q.Job(ctx, a.Receipt.ID)
	a.Receipt.State, a.Err = job.State, err
}

// SubmitBatch admits many jobs in one durable batch and returns one answer for
// each, in their order.
func (q *Queue) SubmitBatch(ctx context.Context, specs []jobhost.Spec) ([]jobhost.Submitted, error) {
	answers := make([]jobhost.Submitted, len(specs))
	var (
		ops   []Op
		lanes []*lane
		index []int // of ops in answers
	)
	for i := range specs {
		spec := specs[i] // which stays as the caller has it
		job, l, err := q.prepare(ctx, &spec, fromOutside)
		if err != nil {
			answers[i].Receipt, answers[i].Err = q.existing(ctx, &spec, job, err)
			continue
		}
		ops, lanes, index = append(ops, &Submit{Job: job}), append(lanes, l), append(index, i)
	}
	if len(ops) == 0 {
		return answers, nil
	}
	done := make(chan struct{})
	q.inflight.Add(1)
	q.store.Commit(ops, func(results []OpResult, err error) {
		defer q.inflight.Done()
		defer close(done)
		for i, op := range ops {
			result := OpResult{Err: err}
			if err == nil {
				result = results[i]
			}
			answers[index[i]] = q.submitted(lanes[i], op.(*Submit).Job, result)
		}
	})
	select {
	case <-done:
		for _, i := range index {
			q.stateOfExisting(ctx, &answers[i])
		}
		return answers, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// admit checks a job, fills in its defaults and reserves its place in the
// queue. The caller must commit it and call submitted. A job that there is no
// room for comes with its error: see existing. Its payload is in ref if that is
// not nil, and in the spec too if it is small.
func (q *Queue) admit(spec *jobhost.Spec, ref *payload.Ref, who submitter) (*JobSpec, *lane, error) {
	if err := who.check(spec); err != nil {
		return nil, nil, err
	}
	if q.closed.Load() && (who == fromOutside || who == fromSchedule) {
		return nil, nil, errClosed
	}
	l := q.lanes.of(spec.Worker)
	if l == nil || l.parked.Load() {
		return nil, nil, q.noWorker(spec.Worker)
	}
	if len(spec.Payload) > q.cfg.MaxPayload && ref == nil { // an upload has a limit of its own
		return nil, nil, &jobhost.Error{
			Code:    jobhost.CodeTooLarge,
			Field:   "payload",
			Message: fmt.Sprintf("a payload of %d bytes is larger than %d", len(spec.Payload), q.cfg.MaxPayload),
			Hint:    "upload it first (POST /v1/payloads, jobhost submit --file), or raise host.max_payload",
		}
	}
	if cb := spec.Callback.Worker; cb != "" {
		if to := q.lanes.of(cb); to == nil || to.parked.Load() {
			return nil, nil, fmt.Errorf("callback: %w", q.noWorker(cb))
		}
	}
	denied := q.judgeCallback(spec)
	worker := l.worker.Load()
	job := q.fill(worker, spec)
	if ref != nil {
		job.Ref, job.Payload = ref.String(), nil
		job.Digest, job.DigestBefore = digestsOf(spec, ref)
	}
	if denied != nil {
		return job, nil, denied
	}
	if job.Tasks > worker.Capacity {
		return job, nil, &jobhost.Error{
			Code:    jobhost.CodeInvalid,
			Field:   "tasks",
			Message: fmt.Sprintf("%d tasks never fit into the queue of %s, which holds %d", job.Tasks, l.name, worker.Capacity),
			Hint:    "ask for fewer tasks, or raise the worker's queue_capacity",
		}
	}
	if refusal := q.refusal.Load(); refusal != nil {
		return job, nil, refusal
	}
	if err := l.accept(job.Tasks); err != nil {
		return job, nil, err
	}
	return job, l, nil
}

func (q *Queue) noWorker(name string) error {
	has := slices.DeleteFunc(q.lanes.loaded(), func(name string) bool { return strings.HasPrefix(name, jobhost.ReservedWorkers) })
	return &jobhost.Error{
		Code:    jobhost.CodeNotFound,
		Field:   "worker",
		Message: fmt.Sprintf("there is no worker %q", name),
		Hint:    "this host has: " + strings.Join(has, ", "),
	}
}

// fill makes the job that is stored: the spec with all defaults.
func (q *Queue) fill(w *Worker, spec *jobhost.Spec) *JobSpec {
	now := q.clock.now()
	job := &JobSpec{
		ID:          spec.ID,
		Worker:      spec.Worker,
		Payload:     spec.Payload,
		ContentType: spec.ContentType,
		Entry:       spec.Entry,
		Priority:    jobhost.PriorityAt(spec.Priority.Level()),
		Tasks:       max(spec.Tasks, 1),
		MaxAttempts: spec.MaxAttempts,
		Timeout:     spec.Timeout,
		Retention:   (spec.Retention + time.Millisecond - 1).Truncate(time.Millisecond),
		Labels:      spec.Labels,

		ConcurrencyKey: spec.ConcurrencyKey,
		UniqueKey:      spec.UniqueKey,
		Callback:       spec.Callback,

		CreatedAt: MillisOf(now),
	}
	job.Digest, job.DigestBefore = digestsOf(spec, nil)
	if job.ID == "" {
		job.ID = jobhost.NewID()
	}
	if spec.Deadline > 0 {
		job.Deadline = MillisOf(now.Add(spec.Deadline))
	}
	if spec.UniqueFor > 0 {
		job.UniqueUntil = MillisOf(now.Add(spec.UniqueFor))
	}
	if job.MaxAttempts == 0 {
		job.MaxAttempts = w.Retry.MaxAttempts
	}
	if job.Timeout == 0 {
		job.Timeout = w.Timeout
	}
	switch {
	case !spec.RunAt.IsZero():
		job.ReadyAt = max(MillisOf(spec.RunAt), job.CreatedAt)
	default:
		job.ReadyAt = MillisOf(now.Add(spec.Delay))
	}
	return job
}

// digestsOf identify what the caller asked for, apart from the id; ref is for a payload
// that is elsewhere. before is the digest as it was once: the payload followed the options
// there, so that one which began with an option could be taken for it.
func digestsOf(spec *jobhost.Spec, ref *payload.Ref) (now, before [16]byte) {
	whole := digestBefore(spec, ref)
	size := int64(len(spec.Payload))
	if ref != nil {
		size = ref.Size
	}
	var b [len(digestDomain) + 8 + len(whole)]byte
	copy(b[:], digestDomain)
	binary.LittleEndian.PutUint64(b[len(digestDomain):], uint64(size))
	copy(b[len(digestDomain)+8:], whole[:])
	sum := sha256.Sum256(b[:])
	return [16]byte(sum[:]), [16]byte(whole[:])
}

// digestDomain keeps the digests of one version apart from those of others.
const digestDomain = "jobhost job 2\n"

func digestBefore(spec *jobhost.Spec, ref *payload.Ref) (whole [sha256.Size]byte) {
	h := sha256.New()
	var buf [8]byte
	number := func(n int64) {
		binary.LittleEndian.PutUint64(buf[:], uint64(n))
		h.Write(buf[:])
	}
	text := func(s string) {
		number(int64(len(s)))
		h.Write([]byte(s))
	}
	text(spec.Worker)
	text(spec.ContentType)
	text(spec.Entry)
	number(int64(spec.Priority.Level()))
	number(int64(max(spec.Tasks, 1)))
	number(int64(spec.MaxAttempts))
	number(int64(spec.Timeout))
	number(int64(spec.Delay))
	number(int64(MillisOf(spec.RunAt)))
	number(int64(len(spec.Labels)))
	for _, k := range names(spec.Labels) {
		text(k)
		text(spec.Labels[k])
	}
	// What is left out leaves the digest as it was before there was such an option.
	for _, option := range []struct{ name, value string }{
		{"concurrency_key", spec.ConcurrencyKey}, {"unique_key", spec.UniqueKey}, {"callback", spec.Callback.Worker}, {"callback_url", spec.Callback.URL},
	} {
		if option.value != "" {
			text(option.name)
			text(option.value)
		}
	}
	for _, option := range []struct {
		name  string
		value time.Duration
	}{{"deadline", spec.Deadline}, {"unique_for", spec.UniqueFor}, {"retention", spec.Retention}} {
		if option.value != 0 {
			text(option.name)
			number(int64(option.value))
		}
	}
	var sum [sha256.Size]byte
	switch {
	case ref != nil && ref.Size > wholeDigest:
		text("payload sha256")
		h.Write(ref.Digest[:])
	case len(spec.Payload) > wholeDigest:
		text("payload sha256")
		sum = sha256.Sum256(spec.Payload)
		h.Write(sum[:])
	default:
		h.Write(spec.Payload)
	}
	return [sha256.Size]byte(h.Sum(sum[:0]))
}

// names returns the names of labels in order. Most jobs have none, and then it
// allocates nothing.
func names(labels map[string]string) []string {
	if len(labels) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(labels))
}

// accept takes room for n tasks of a new job, unless the worker is draining.
func (l *lane) accept(n int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mode == jobhost.WorkerDraining {
		return &jobhost.Error{
			Code:    jobhost.CodeUnavailable,
			Field:   "worker",
			Message: fmt.Sprintf("worker %s is draining and takes no jobs", l.name),
			Hint:    "jobhost worker resume " + l.name,
		}
	}
	return l.reserveLocked(n)
}

// reserve takes room for n tasks, which whoever learns their fate gives back or
// fills.
func (l *lane) reserve(n int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reserveLocked(n)
}

func (l *lane) reserveLocked(n int) error {
	if waiting, capacity := l.waitingLocked(), l.worker.Load().Capacity; waiting+n > capacity {
		return &jobhost.Error{
			Code:       jobhost.CodeExhausted,
			Field:      "worker",
			Message:    fmt.Sprintf("the queue of %s is full: %d tasks wait, of %d", l.name, waiting, capacity),
			Hint:       "try again later, add slots to the worker or raise its queue_capacity",
			RetryAfter: retryAfter,
		}
	}
	l.pending += n
	return nil
}

// vacate gives back room for n tasks that was taken and not filled.
func (l *lane) vacate(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending -= n
}

// retryAfter is what a caller is told who met a full queue.
const retryAfter = time.Second

// submitted runs when the fate of a submit is known.
func (q *Queue) submitted(l *lane, job *JobSpec, result OpResult) jobhost.Submitted {
	q.release(job, result)
	if result.Err != nil || result.Existing {
		l.vacate(job.Tasks)
		if result.Err != nil {
			return jobhost.Submitted{Err: fmt.Errorf("submit: %w", result.Err)}
		}
		return jobhost.Submitted{Receipt: jobhost.Receipt{ID: cmp.Or(result.ID, job.ID), Deduplicated: true}}
	}
	job.Key = result.Key
	state := q.enter(l, job, job.Tasks)
	return jobhost.Submitted{Receipt: jobhost.Receipt{ID: job.ID, State: state}}
}

// enter puts a job that is durable into its lane, where there is room for so
// many tasks; the lane is nil if nobody has heard of the worker yet.
func (q *Queue) enter(l *lane, job *JobSpec, reserved int) jobhost.State {
	state := jobhost.Ready
	if job.ReadyAt > job.CreatedAt {
		state = jobhost.Scheduled
	}
	q.cfg.Publish(jobhost.Event{
		Kind: jobhost.EventSubmitted, Time: q.clock.now(), Job: job.ID, Worker: job.Worker, State: state,
		Workflow: job.Origin.WorkflowID(), Step: job.Origin.StepName(),
	})
	if l == nil {
		return state
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending -= reserved
	keep := l.waitingLocked() < shortQueue
	x := traits{job.Group(), job.Deadline}
	bare := job.withoutItems()
	for i := range job.Tasks {
		e := entry{key: job.Key + Key(i), readyAt: job.ReadyAt, index: int16(i), level: int8(job.Priority.Level())}
		if keep && l.soonLocked(e.readyAt) {
			l.keepNewLocked(e, bare, job.item(i))
		}
		l.pushLocked(e, x)
	}
	l.pumpLocked()
	return state
}
