package record

import (
	"context"

	"github.com/jobhost/jobhost"
)

// DeadReader is the part of a store that knows of dead letters: of each task
// that is dead, or was when it was revived and has not died again since.
type DeadReader interface {
	// Dead lists dead letters, the latest first, from the one after the place
	// given. It looks at so many letters at most that it is quick, and returns
	// the place to go on from; the zero place = there are no more.
	Dead(ctx context.Context, q DeadQuery) ([]DeadRecord, DeadPlace, error)
	// Deaths counts all deaths by hour, worker, category and code: those of the
	// hours that begin at or after the one and before the other time. Codes
	// may be put together as [jobhost.OtherCodes] when there are many.
	Deaths(ctx context.Context, after, before Millis) ([]DeathRecord, error)
}

// DeadPlace is where a letter stands in the order of deaths.
type DeadPlace struct {
	DiedAt Millis
	Key    Key // of the task
}

// DeadQuery selects dead letters. Zero values select everything.
type DeadQuery struct {
	Worker, Code  string
	Category      jobhost.Category
	After, Before Millis // After ≤ died < Before
	Labels        map[string]string
	Text          string    // in the job's id, the code or the message, in any case
	Retried       bool      // revived ones too
	Below         DeadPlace // only letters after this place; zero = from the latest
	Limit         int
}

// DeadRecord is a dead letter.
type DeadRecord struct {
	DeadPlace
	Job, Worker          string
	Index, Attempts      int
	Labels               map[string]string
	Code, Message        string
	Category             jobhost.Category
	Severity             jobhost.Severity
	CreatedAt, RevivedAt Millis // RevivedAt 0 = never since it died
}

// DeathRecord counts deaths.
type DeathRecord struct {
	Hour         Millis // when it began
	Worker, Code string
	Category     jobhost.Category
	N            int64
}
