package pgqueue

import (
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// Nearly every id of a new job is free, and the server finds out while it adds the row. To look first would cost each
// commit a round trip and a second run, and the server a look at the index for each job. So an id that the image doesn't
// know is taken for free. If the server refuses the commit because one is not, the commit is made again with looks, and
// so are those after it for a while: a program that submits jobs again often does so with many.

// looksAfterWrong is in how many commits ids are looked up after one that wasn't free.
const looksAfterWrong = 256

var _ pgdb.Guesser = (*image)(nil)

// Wrong implements [pgdb.Guesser].
func (im *image) Wrong(err *pgconn.PgError) bool {
	const uniqueViolation = "23505"
	if im.jobs.looks > 0 || err.Code != uniqueViolation || err.TableName != "job" || err.ConstraintName != "job_id_key" {
		return false
	}
	im.jobs.looks = looksAfterWrong
	return true
}

// head returns the job that has an id; nil = none has, or it is not known yet, or the id is taken for free: that of a job
// which nothing else can keep from being added, or the server would not find out.
func (r *jobRows) head(tx *pgdb.Tx, job *record.JobSpec) *jobHead {
	if r.looks > 0 || job.Parent != nil || job.UniqueKey != "" || ownRef(job) != "" {
		return r.ids.Get(tx, job.ID)
	}
	return r.ids.Known(job.ID)
}
