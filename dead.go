package jobhost

import (
	"context"
	"fmt"
	"time"
)

// DeadLetters manages tasks that have died: that ran out of attempts, or failed
// permanently.
type DeadLetters interface {
	// Dead lists dead letters, latest first. A page may have fewer letters than
	// its limit, even none, and still be followed by another: see [DeadPage].
	Dead(ctx context.Context, filter DeadFilter) (DeadPage, error)
	// DeadSummary counts deaths by code, category and worker.
	DeadSummary(ctx context.Context, query DeadQuery) (DeadSummary, error)
	// ChangeDead retries or removes dead letters, some of them or all that match, up to
	// [MaxDeadChange] and for up to [MaxDeadTime] per call; Next continues. Letters that
	// can't be changed are reported and don't affect the others.
	ChangeDead(ctx context.Context, change DeadChange) (DeadChanged, error)
}

// Bounds of [DeadLetters].
const (
	MaxDeadChange = 1000             // letters that one call changes
	MaxDeadTime   = 20 * time.Second // duration of one call, which then ends with a cursor
	MaxDeadRate   = 100_000          // letters per second
	MinDeadRate   = 0.05             // one letter in MaxDeadTime
	MaxDeadText   = 256              // bytes of a search text, and of a code
)

// DeadLetter is a task that has died.
type DeadLetter struct {
	Job    string            `json:"job"`
	Task   int               `json:"task"`
	Worker string            `json:"worker"`
	Labels map[string]string `json:"labels,omitempty"`
	// Code, Category, Severity and Message are those of the last failure; the
	// job lists the earlier ones too.
	Code     string   `json:"code"`
	Category Category `json:"category"`
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
	// Attempts counts those made since the last manual retry.
	Attempts  int       `json:"attempts"`
	CreatedAt time.Time `json:"created_at"`
	DiedAt    time.Time `json:"died_at"`
	// Retried is true when the task was made ready again after it died; the
	// letter stays until the job is removed. If the task dies again, Retried is
	// false again.
	Retried   bool       `json:"retried"`
	RetriedAt *time.Time `json:"retried_at,omitempty"`
}

// DeadFilter selects dead letters. The zero value selects all that have not
// been retried.
type DeadFilter struct {
	Worker   string
	Category Category
	Code     string
	// After and Before bound the time of the death: After ≤ died < Before.
	After, Before time.Time
	// Labels are those that the job must have, with these values.
	Labels map[string]string
	// Text must occur in the id, the code or the message, ignoring case.
	Text string
	// Retried also selects letters that were retried.
	Retried bool
	Cursor  string
	// Limit is the size of a page, up to [MaxPage]; 0 = 50.
	Limit int
}

// Check reports what is wrong with the filter in itself. Whether its cursor is
// one of the server's, only the server knows.
func (f *DeadFilter) Check() error {
	if f.Worker != "" {
		if err := CheckWorker(f.Worker); err != nil {
			return err
		}
	}
	if f.Category != "" {
		if _, err := ParseCategory(string(f.Category)); err != nil {
			return err
		}
	}
	if f.Limit < 0 || f.Limit > MaxPage {
		return invalid("limit", "limit %d is not between 1 and %d", f.Limit, MaxPage)
	}
	if len(f.Labels) > MaxLabels {
		return invalid("label", "%d labels are more than %d", len(f.Labels), MaxLabels)
	}
	if err := checkText("code", f.Code, MaxDeadText); err != nil {
		return err
	}
	return checkText("text", f.Text, MaxDeadText)
}

// DeadPage is one page of a list of dead letters.
type DeadPage struct {
	Letters []DeadLetter `json:"letters"`
	// Next is the cursor of the next page; empty on the last one. Where a
	// filter selects few letters among many, a page may end before it is full.
	Next string `json:"next,omitempty"`
}

// DeadAction is what [DeadChange] does with letters.
type DeadAction string

// The actions.
const (
	DeadRetry  DeadAction = "retry"  // makes the task ready, with all its attempts
	DeadDelete DeadAction = "delete" // removes the job, with all its tasks
)

// DeadChange says what to do with which dead letters.
type DeadChange struct {
	Action DeadAction
	// Jobs selects all dead letters of these jobs, at least one, instead of the
	// filter; nil = use the filter.
	Jobs []string
	// Filter selects those that match, starting at its cursor; its limit
	// applies to the call, 0 = [MaxDeadChange].
	Filter DeadFilter
	// Rate is how many letters to change per second; 0 = as fast as possible.
	Rate float64
	// DryRun changes nothing and reports what would be changed.
	DryRun bool
}

// Check reports what is wrong with the change in itself.
func (c *DeadChange) Check() error {
	switch {
	case c.Action != DeadRetry && c.Action != DeadDelete:
		return invalid("action", "%s is not done to dead letters", clip(string(c.Action)))
	case c.Rate != 0 && !(c.Rate >= MinDeadRate && c.Rate <= MaxDeadRate):
		return invalid("rate", "rate %v is not between %v and %d", c.Rate, MinDeadRate, MaxDeadRate)
	case c.Jobs != nil && len(c.Jobs) == 0: // taking this for all letters would be dangerous
		return invalid("jobs", "no job is named")
	case len(c.Jobs) > MaxDeadChange:
		return invalid("jobs", "%d jobs are more than %d", len(c.Jobs), MaxDeadChange)
	}
	for _, id := range c.Jobs {
		if err := CheckID(id); err != nil {
			return err
		}
	}
	return c.Filter.Check()
}

// DeadChanged is the result of a [DeadChange].
type DeadChanged struct {
	// Matched counts the letters that were selected, Changed those that were
	// retried or removed, or would be.
	Matched int  `json:"matched"`
	Changed int  `json:"changed"`
	DryRun  bool `json:"dry_run,omitempty"`
	// Failed lists the letters that could not be changed.
	Failed []DeadFault `json:"failed,omitempty"`
	// Next is the cursor to continue from; empty when all are done.
	Next string `json:"next,omitempty"`
}

// DeadFault says why a dead letter, or a job, could not be changed.
type DeadFault struct {
	Job   string `json:"job"`
	Task  int    `json:"task"`
	Error *Error `json:"error"`
}

// DeadQuery says which deaths to count.
type DeadQuery struct {
	Worker string // empty = of all workers
	// After and Before bound the time, in whole hours; zero values = the last
	// 24 hours.
	After, Before time.Time
}

// DeadSummary counts deaths: each time a task died counts, whatever happened to
// it later. Deaths are remembered for 90 days.
type DeadSummary struct {
	After  time.Time `json:"after"`
	Before time.Time `json:"before"`
	Deaths int64     `json:"deaths"`
	// Codes, Categories and Workers are the most frequent ones, up to 20.
	Codes      []DeathCount `json:"codes"`
	Categories []DeathCount `json:"categories"`
	Workers    []DeathCount `json:"workers"`
	// Trend counts by hour, or by day if the range is longer than three days;
	// intervals without a death are included.
	Trend []DeathTime `json:"trend"`
}

// DeathCount is the number of deaths with the same code, category or worker.
type DeathCount struct {
	Name   string `json:"name"`
	Deaths int64  `json:"deaths"`
}

// DeathTime is the number of deaths in the interval that begins at Since.
type DeathTime struct {
	Since  time.Time `json:"since"`
	Deaths int64     `json:"deaths"`
}

// OtherCodes stands for failure codes of a worker that were not counted
// individually because there were too many different ones within an hour.
const OtherCodes = "(other)"

// ParseCategory returns the category of that name.
func ParseCategory(name string) (Category, error) {
	for _, c := range Categories() {
		if string(c) == name {
			return c, nil
		}
	}
	return "", &Error{
		Code:    CodeInvalid,
		Field:   "category",
		Message: fmt.Sprintf("%s is not a category", clip(name)),
		Hint:    "use validation, timeout, network, resource, business, system or unknown",
	}
}
