package workflow

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// defaultPage is the default page size.
const defaultPage = 50

// Workflows lists workflows: see [jobhost.WorkflowRunner].
func (e *Engine) Workflows(ctx context.Context, f jobhost.WorkflowFilter) (jobhost.WorkflowPage, error) {
	if err := f.Check(); err != nil {
		return jobhost.WorkflowPage{}, fmt.Errorf("list workflows: %w", err)
	}
	q := record.WorkflowQuery{
		Name: f.Name, Parent: f.Parent, After: record.MillisOf(f.After), Before: record.MillisOf(f.Before), Limit: cmp.Or(f.Limit, defaultPage) + 1,
	}
	if f.Status != "" {
		status := storedStatus(f.Status)
		q.Status = &status
	}
	if f.Cursor != "" {
		n, err := strconv.ParseInt(f.Cursor, 10, 64)
		if err != nil || n <= 0 {
			return jobhost.WorkflowPage{}, &jobhost.Error{
				Code: jobhost.CodeInvalid, Field: "cursor", Message: "the cursor is none that a list has returned",
			}
		}
		q.Below = record.Key(n)
	}
	records, err := e.store.Workflows(ctx, q)
	if err != nil {
		return jobhost.WorkflowPage{}, err
	}
	page := jobhost.WorkflowPage{Workflows: []jobhost.WorkflowRun{}}
	if len(records) == q.Limit {
		records = records[:q.Limit-1]
		page.Next = strconv.FormatInt(int64(records[len(records)-1].Key), 10)
	}
	for i := range records {
		page.Workflows = append(page.Workflows, describe(&records[i]))
	}
	return page, nil
}
