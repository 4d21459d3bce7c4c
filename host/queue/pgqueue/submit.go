package pgqueue

import (
	"bytes"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// jobRows are the jobs that are submitted, and the rows that submits look up. It is a [pgdb.Member].
type jobRows struct {
	db          *pgdb.DB
	ids         pgdb.Table[string, jobHead]
	uniq        pgdb.Table[uniqKey, uniqRow]
	refs        pgdb.Table[string, struct{}] // names of objects, live or gone
	childCounts pgdb.Table[parentKey, int]   // how many children a job has

	looks int // in how many commits ids are looked up: see Wrong

	// What was added and not flushed:
	jobs     []jobRow
	labels   []labelRow
	items    []itemRow
	children []childRow
	objects  []string // references
}

// jobHead is what a submit has to know of an existing job with the same id.
type jobHead struct {
	seq    int64
	digest []byte
}

type jobRow struct {
	seq, worker, tasks int64
	job                *record.JobSpec
	texts
}

type labelRow struct {
	name, value string
	job         int64
}

type itemRow struct {
	task int64
	data []byte
}

func (r *jobRows) init(db *pgdb.DB) {
	r.db = db
	r.ids = pgdb.Table[string, jobHead]{
		DB: db, SQL: "SELECT id, seq, digest FROM jobhost.job WHERE id=ANY($1)",
		Args: func(ids []string) []any { return []any{ids} },
		Scan: func(rows pgx.Rows) (id string, head jobHead, err error) {
			err = rows.Scan(&id, &head.seq, &head.digest)
			return id, head, err
		},
	}
	r.initUniq()
	r.initRefs()
	r.initChildren()
}

// submit adds a job with its tasks, or finds the existing one.
func (b *batch) submit(tx *pgdb.Tx, job *record.JobSpec, res *record.OpResult) error {
	im := b.image
	if there := im.existing(tx, job, res); there {
		return nil
	}
	checkRoom(tx, im, job.Parent, 1, res)
	worker, known := im.workers[job.Worker]
	taken := known && im.taken(tx, job, worker, res)
	if ref := ownRef(job); ref != "" && !taken && res.Err == nil {
		im.checkRef(tx, ref, res)
	}
	if taken || res.Err != nil || tx.Missed() {
		return nil //nolint:nilerr // a refusal is an answer
	}
	return b.insert(job, res)
}

// insert adds a job for which submit has found no obstacle.
func (b *batch) insert(job *record.JobSpec, res *record.OpResult) error {
	im := b.image
	text, err := b.textsOf(job)
	if err != nil {
		return err
	}
	worker := im.worker(job.Worker)
	key, tasks := im.next, int64(max(job.Tasks, 1))
	im.next += tasks
	im.jobs.ids.Put(job.ID, jobHead{key, bytes.Clone(job.Digest[:])}) // not the job itself, with its payload
	im.jobs.jobs = append(im.jobs.jobs, jobRow{seq: key, worker: worker, tasks: tasks, job: job, texts: text})
	im.tasks.add(key, worker, tasks, job)
	im.addExtras(key, worker, job)
	im.count(worker, record.Open, tasks)
	im.created(key, job.CreatedAt)
	res.Key = record.Key(key)
	return nil
}

// addExtras adds the rows that only some jobs have, such as labels.
func (im *image) addExtras(key, worker int64, job *record.JobSpec) {
	r := &im.jobs
	for i, item := range job.Items {
		if item == nil {
			item = []byte{}
		}
		r.items = append(r.items, itemRow{key + int64(i), item})
	}
	if job.Parent != nil {
		im.addChild(key, job.Parent)
	}
	for name, value := range job.Labels {
		r.labels = append(r.labels, labelRow{name, value, key})
	}
	if ref := ownRef(job); ref != "" {
		im.addObject(ref)
	}
	if job.UniqueKey != "" {
		r.uniq.Put(uniqKey{worker, job.UniqueKey}, uniqRow{job: key, until: int64(job.UniqueUntil), id: job.ID})
	}
}

// existing answers a submit whose id is taken.
func (im *image) existing(tx *pgdb.Tx, job *record.JobSpec, res *record.OpResult) bool {
	if !im.free(tx, job.ID) {
		return false
	}
	head := im.jobs.head(tx, job)
	if head == nil {
		return false
	}
	if !job.HasDigest(head.digest) {
		res.Err = record.TakenID(job.ID)
		return true
	}
	res.Key, res.Existing = record.Key(head.seq), true
	return true
}

// ownRef is the reference of the payload if it is removed with the job; empty = there is none.
func ownRef(job *record.JobSpec) string {
	if job.Borrowed {
		return ""
	}
	return job.Ref
}

// then adds the jobs that follow from an operation that ended a task, such as callbacks.
func (b *batch) then(tx *pgdb.Tx, follow func(record.End) []*record.JobSpec, res *record.OpResult) error {
	for _, job := range follow(record.End{Job: res.JobEnded, Final: res.Final}) {
		var added record.OpResult
		if err := b.submit(tx, job, &added); err != nil {
			return err
		}
		if added.Err == nil && !added.Existing { // otherwise it was added before
			job.Key = added.Key
			res.Then = append(res.Then, job)
		}
	}
	return nil
}

// tables are those whose rows are read.
func (r *jobRows) tables() []table { return []table{&r.ids, &r.uniq, &r.refs, &r.childCounts} }

// Read implements [pgdb.Member].
func (r *jobRows) Read(b *pgx.Batch) {
	for _, t := range r.tables() {
		t.Read(b)
	}
}

// Flush implements [pgdb.Member].
func (r *jobRows) Flush(b *pgx.Batch) error {
	if len(r.jobs) > 0 {
		r.flushJobs(b)
	}
	if len(r.labels) > 0 {
		b.Queue(r.db.SQL("INSERT INTO jobhost.label (name, value, job) SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])"),
			column(r.labels, func(l *labelRow) string { return l.name }), column(r.labels, func(l *labelRow) string { return l.value }),
			column(r.labels, func(l *labelRow) int64 { return l.job }))
	}
	if len(r.items) > 0 {
		b.Queue(r.db.SQL("INSERT INTO jobhost.item (task, data) SELECT * FROM unnest($1::bigint[], $2::bytea[])"),
			column(r.items, func(i *itemRow) int64 { return i.task }), column(r.items, func(i *itemRow) []byte { return i.data }))
	}
	if len(r.children) > 0 {
		r.flushChildren(b)
	}
	if len(r.objects) > 0 {
		b.Queue(r.db.SQL("INSERT INTO jobhost.object (ref) SELECT * FROM unnest($1::text[])"), r.objects)
	}
	r.flushUniq(b)
	return nil
}

// flushJobs adds rows. Beside each other in a list of columns, calls of unnest give a row at a time; in FROM the server
// would first write the rows of each call down, which takes longer than to add them.
func (r *jobRows) flushJobs(b *pgx.Batch) {
	number := func(of func(*jobRow) int64) []int64 { return column(r.jobs, of) }
	text := func(of func(*jobRow) string) []string { return column(r.jobs, of) }
	b.Queue(r.db.SQL(`INSERT INTO jobhost.job (seq, id, worker, tasks, priority, max_attempts, timeout_ns, created_at, ready_at,
			digest, entry, content_type, labels, options, ref, payload)
		SELECT unnest($1::bigint[]), unnest($2::text[]), unnest($3::bigint[]), unnest($4::bigint[]), unnest($5::bigint[]), unnest($6::bigint[]),
			unnest($7::bigint[]), unnest($8::bigint[]), unnest($9::bigint[]), unnest($10::bytea[]), unnest($11::text[]), unnest($12::text[]),
			unnest($13::text[]), unnest($14::text[]), unnest($15::text[]), unnest($16::bytea[])`),
		number(func(j *jobRow) int64 { return j.seq }), text(func(j *jobRow) string { return j.job.ID }),
		number(func(j *jobRow) int64 { return j.worker }), number(func(j *jobRow) int64 { return j.tasks }),
		number(func(j *jobRow) int64 { return int64(j.job.Priority) }), number(func(j *jobRow) int64 { return int64(j.job.MaxAttempts) }),
		number(func(j *jobRow) int64 { return int64(j.job.Timeout) }), number(func(j *jobRow) int64 { return int64(j.job.CreatedAt) }),
		number(func(j *jobRow) int64 { return int64(j.job.ReadyAt) }),
		column(r.jobs, func(j *jobRow) []byte { return j.job.Digest[:] }),
		text(func(j *jobRow) string { return j.job.Entry }), text(func(j *jobRow) string { return j.job.ContentType }),
		text(func(j *jobRow) string { return j.labels }), text(func(j *jobRow) string { return j.options }),
		text(func(j *jobRow) string { return ownRef(j.job) }),
		column(r.jobs, func(j *jobRow) []byte { return notNil(j.job.Payload) }))
}

// notNil replaces nil, which would be NULL.
func notNil(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

// forget drops what was flushed or rolled back.
func (r *jobRows) forget() {
	clear(r.jobs)
	clear(r.items)
	r.jobs, r.labels, r.items, r.children, r.objects = r.jobs[:0], r.labels[:0], r.items[:0], r.children[:0], r.objects[:0]
}

// Flushed implements [pgdb.Member].
func (r *jobRows) Flushed() {
	for _, t := range r.tables() {
		t.Flushed()
	}
	r.forget()
}

// AfterCommit implements [pgdb.Member].
func (r *jobRows) AfterCommit() {
	r.looks = max(r.looks-1, 0)
	for _, t := range r.tables() {
		t.AfterCommit()
	}
	r.forget()
}

// AfterRollback implements [pgdb.Member].
func (r *jobRows) AfterRollback() {
	for _, t := range r.tables() {
		t.AfterRollback()
	}
	r.forget()
}
