package sqlitequeue

import (
	"encoding/json"
	"fmt"

	"github.com/jobhost/jobhost/host/queue"
)

// schemaOptions keeps the options of a job that few have, as JSON, and beside
// each task the group of its concurrency key.
const schemaOptions = `
ALTER TABLE job ADD COLUMN options TEXT;
ALTER TABLE task ADD COLUMN lane_group INTEGER NOT NULL DEFAULT 0`

// options are those that few jobs have. The names are stored.
type options struct {
	ConcurrencyKey string `json:"concurrency_key,omitempty"`
}

// optionsOf returns the text that is kept of a job's options; empty = it has none.
func optionsOf(job *queue.JobSpec) (string, error) {
	o := options{ConcurrencyKey: job.ConcurrencyKey}
	if o == (options{}) {
		return "", nil
	}
	text, err := json.Marshal(&o)
	return string(text), err
}

// fill sets the options of a job from the text that is kept of them.
func (o *options) fill(text string, job *queue.JobSpec) error {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), o); err != nil {
		return fmt.Errorf("options of job %s: %w", job.ID, err)
	}
	job.ConcurrencyKey = o.ConcurrencyKey
	return nil
}
