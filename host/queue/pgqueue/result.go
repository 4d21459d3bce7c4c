package pgqueue

import (
	"context"
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// Result implements [record.Reader].
func (s *Store) Result(ctx context.Context, key record.Key) (data []byte, err error) {
	var row []byte
	err = s.ask(ctx, func() { data = nil }, []any{&row}, func() error {
		data = notNil(row)
		return nil
	}, "SELECT data FROM jobhost.task LEFT JOIN jobhost.result ON result.task=seq WHERE seq=$1 AND status=1", key)
	if err != nil {
		return nil, fmt.Errorf("read result: %w", err)
	}
	if data == nil {
		return nil, &jobhost.Error{Code: jobhost.CodeNotFound, Message: "there is no result: the task has not succeeded"}
	}
	return data, nil
}

// resultsByJob adds up sizes before it looks at any data, so that what would be too much isn't read.
const resultsByJob = `SELECT idx, result_size, ref, data FROM (
		SELECT seq, idx, result_size, ref, row_number() OVER w AS n, sum(CASE WHEN ref='' THEN result_size ELSE 0 END) OVER w AS sum FROM (
			SELECT seq, idx, result_size, ref FROM jobhost.task
			WHERE seq>=$1::bigint+$2::bigint AND seq<(SELECT seq+tasks FROM jobhost.job WHERE seq=$1) AND status=1 ORDER BY seq LIMIT $3) t
		WINDOW w AS (ORDER BY seq)) t
	LEFT JOIN LATERAL (SELECT data FROM jobhost.result WHERE task=seq AND ref='' OFFSET 0) r ON true
	WHERE n=1 OR sum<=$4 ORDER BY seq`

// Results implements [record.Reader].
func (s *Store) Results(ctx context.Context, job record.Key, from, limit, most int) (results []record.ResultRecord, err error) {
	var r record.ResultRecord
	err = s.ask(ctx, func() { results = nil }, []any{&r.Index, &r.Size, &r.Ref, &r.Data}, func() error {
		if r.Ref == "" {
			r.Data = notNil(r.Data)
		}
		results = append(results, r)
		return nil
	}, resultsByJob, job, from, limit, most)
	if err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	return results, nil
}
