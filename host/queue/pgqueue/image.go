package pgqueue

import (
	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/internal/pgdb"
)

// image is the rows that the writer keeps in memory. Only the writer uses it. It is a [pgdb.Member] made of others, which are in
// the files of their subjects.
type image struct {
	db *pgdb.DB
	ledger
	jobs       jobRows
	tasks      taskRows
	letters    deadRows
	evictions  evictRows
	keys       keyRows
	schedules  scheduleRows
	workflows  workflowRows
	inbox      inboxRows
	notes      noteRows
	companions []Companion

	parts []pgdb.Member // all of the above that keep rows
}

func newImage(db *pgdb.DB) *image {
	im := &image{db: db, ledger: newLedger(db)}
	im.jobs.init(db)
	im.tasks.init(db)
	im.letters.db = db
	im.evictions.init(db)
	im.keys.init(db)
	im.schedules.init(db)
	im.workflows.init(db)
	im.inbox.init(db)
	im.notes.init(db)
	im.parts = []pgdb.Member{&im.ledger, &im.jobs, &im.tasks, &im.letters, &im.keys, &im.schedules, &im.workflows, &im.inbox, &im.evictions, &im.notes}
	return im
}

// load reads what the image has to know from the start.
func (im *image) load(s *pgdb.Session) error {
	if err := im.ledger.load(s); err != nil {
		return err
	}
	return im.keys.load(s)
}

// Read implements [pgdb.Member].
func (im *image) Read(b *pgx.Batch) {
	for _, p := range im.parts {
		p.Read(b)
	}
}

// Flush implements [pgdb.Member].
func (im *image) Flush(b *pgx.Batch) error {
	for _, p := range im.parts {
		if err := p.Flush(b); err != nil {
			return err
		}
	}
	return nil
}

// Flushed implements [pgdb.Member].
func (im *image) Flushed() {
	for _, p := range im.parts {
		p.Flushed()
	}
}

// AfterCommit implements [pgdb.Member].
func (im *image) AfterCommit() {
	for _, p := range im.parts {
		p.AfterCommit()
	}
}

// AfterRollback implements [pgdb.Member].
func (im *image) AfterRollback() {
	for _, p := range im.parts {
		p.AfterRollback()
	}
}

// table is a [pgdb.Table] of any kind.
type table interface {
	Read(b *pgx.Batch)
	Flushed()
	AfterCommit()
	AfterRollback()
}

// column returns a column of some rows, as an argument of a statement that writes them all.
func column[R, T any](rows []R, of func(*R) T) []T {
	list := make([]T, len(rows))
	for i := range rows {
		list[i] = of(&rows[i])
	}
	return list
}
