package queue

import (
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// Results are read from the store in pieces, and none is read while the reader of the
// ones before is slow.
const (
	resultsPiece = 256     // tasks
	resultsBytes = 1 << 20 // of their results together, unless one has more
)

// Results yields what the tasks of a job returned: see [jobhost.ResultLister].
func (q *Queue) Results(ctx context.Context, id string, most int) iter.Seq2[jobhost.Result, error] {
	return func(yield func(jobhost.Result, error) bool) {
		stored, err := q.record(ctx, id)
		if err != nil {
			yield(jobhost.Result{}, err)
			return
		}
		for from := 0; from < stored.JobSpec.Tasks; {
			rows, err := q.store.Results(ctx, stored.Key, from, resultsPiece, resultsBytes)
			if err != nil {
				yield(jobhost.Result{}, err)
				return
			}
			if len(rows) == 0 {
				return
			}
			for i := range rows {
				if rows[i].Size > most {
					continue
				}
				result, err := q.resultOf(ctx, &rows[i])
				if !yield(result, err) || err != nil {
					return
				}
			}
			from = rows[len(rows)-1].Index + 1
		}
	}
}

// resultOf returns a result, wherever it is.
func (q *Queue) resultOf(ctx context.Context, row *record.ResultRecord) (jobhost.Result, error) {
	result := jobhost.Result{Task: row.Index, Data: row.Data}
	if row.Ref == "" {
		return result, nil
	}
	content, err := q.objects.openRef(ctx, row.Ref)
	if err != nil {
		return result, fmt.Errorf("open result: %w", err)
	}
	defer content.Close()
	result.Data, err = wholeOf(&content)
	return result, err
}

// wholeOf reads a content of known size to its end, where the reader says whether it is
// whole.
func wholeOf(content *jobhost.Content) ([]byte, error) {
	data := make([]byte, content.Size)
	if _, err := io.ReadFull(content, data); err != nil {
		return nil, fmt.Errorf("read result: %w", err)
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return nil, fmt.Errorf("read result: %w", err)
	}
	return data, nil
}
