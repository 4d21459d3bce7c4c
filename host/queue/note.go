package queue

import (
	"context"
	"fmt"

	"github.com/jobhost/jobhost/host/queue/record"
)

// Remember keeps a short text under a name, durably, until another takes its place; an
// empty text forgets it. Store.Notes returns it.
func (q *Queue) Remember(ctx context.Context, name, text string) error {
	if err := q.commitOne(ctx, &record.Note{Name: name, Text: text}, func(record.OpResult) {}); err != nil {
		return fmt.Errorf("remember %s: %w", name, err)
	}
	return nil
}
