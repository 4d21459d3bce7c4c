package firestorestate

import (
	"context"
	"errors"
	"io"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/state"
)

// jobsAtOnce is how many jobs of a page are looked into at a time.
const jobsAtOnce = 8

// Jobs implements [state.Store]. Each job takes two small queries of its states: a
// count in its document would be written with every state, and Firestore takes one
// write of a document a second.
func (s *Store) Jobs(ctx context.Context, after string, limit int) ([]state.Info, error) {
	if limit <= 0 {
		return nil, nil
	}
	if s.isClosed() {
		return nil, state.ErrClosed
	}
	jobs, err := s.jobs(ctx, after, limit)
	if err != nil {
		return nil, err
	}
	list := make([]state.Info, len(jobs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(jobsAtOnce)
	for i, job := range jobs {
		group.Go(func() error {
			list[i] = job.Info
			return s.retry(ctx, s.opts.CallTimeout, func(ctx context.Context) error { return s.survey(ctx, &list[i], job.name) })
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return list, nil
}

// Keys implements [state.Lister]: a read for each job, and nothing of what is in it.
func (s *Store) Keys(ctx context.Context, after string, limit int) ([]state.Job, error) {
	if limit <= 0 {
		return nil, nil
	}
	if s.isClosed() {
		return nil, state.ErrClosed
	}
	q := s.jobsAfter(after, limit)
	q.Select = namesOnly(jobsID, 0).GetSelect()
	var docs []*pb.Document
	err := s.retry(ctx, s.opts.CallTimeout, func(ctx context.Context) (err error) {
		docs, err = s.query(ctx, nil, s.root(), q)
		return err
	})
	jobs := make([]state.Job, len(docs))
	for i, d := range docs {
		jobs[i] = state.ParseKey(lastOf(d.GetName()))
	}
	return jobs, err
}

// jobs reads documents of jobs. What others have put between them is left out.
func (s *Store) jobs(ctx context.Context, after string, limit int) (jobs []*jobDoc, err error) {
	for len(jobs) < limit {
		var docs []*pb.Document
		missing := limit - len(jobs)
		err := s.retry(ctx, s.opts.CallTimeout, func(ctx context.Context) (err error) {
			docs, err = s.query(ctx, nil, s.root(), s.jobsAfter(after, missing))
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, d := range docs {
			job, err := decodeJob(d)
			if err != nil {
				s.opts.Logger.Warn("🟡 left out a document", logkey.Error, err)
				continue
			}
			jobs = append(jobs, job)
		}
		if len(docs) < missing {
			break
		}
		after = lastOf(docs[len(docs)-1].GetName())
	}
	return jobs, nil
}

// jobsAfter selects jobs by their keys.
func (s *Store) jobsAfter(after string, limit int) *pb.StructuredQuery {
	q := from(jobsID, limit)
	q.OrderBy = []*pb.StructuredQuery_Order{by("__name__", pb.StructuredQuery_ASCENDING)}
	if after != "" {
		last := &pb.Value{ValueType: &pb.Value_ReferenceValue{ReferenceValue: s.root() + "/" + jobsID + "/" + after}}
		q.StartAt = &pb.Cursor{Values: []*pb.Value{last}}
	}
	return q
}

// survey finds out how many states a job has, and when the last was written.
func (s *Store) survey(ctx context.Context, info *state.Info, name string) error {
	latest := from(statesID, 1)
	latest.OrderBy = []*pb.StructuredQuery_Order{by(fieldTime, pb.StructuredQuery_DESCENDING)}
	latest.Select = &pb.StructuredQuery_Projection{Fields: []*pb.StructuredQuery_FieldReference{{FieldPath: fieldTime}}}
	docs, err := s.query(ctx, nil, name, latest)
	if err != nil {
		return err
	}
	info.ChangedAt = info.CreatedAt
	for _, d := range docs {
		if at := timeOf(d.GetFields()[fieldTime], d.GetUpdateTime()); at.After(info.ChangedAt) {
			info.ChangedAt = at
		}
	}
	info.States, err = s.count(ctx, name)
	return err
}

// count counts the states of a job.
func (s *Store) count(ctx context.Context, name string) (int, error) {
	ctx, cancel := context.WithCancel(ctx) // ends the stream
	defer cancel()
	const alias = "states"
	stream, err := s.client.RunAggregationQuery(ctx, &pb.RunAggregationQueryRequest{
		Parent: name,
		QueryType: &pb.RunAggregationQueryRequest_StructuredAggregationQuery{StructuredAggregationQuery: &pb.StructuredAggregationQuery{
			QueryType:    &pb.StructuredAggregationQuery_StructuredQuery{StructuredQuery: from(statesID, 0)},
			Aggregations: []*pb.StructuredAggregationQuery_Aggregation{{Alias: alias, Operator: &pb.StructuredAggregationQuery_Aggregation_Count_{Count: &pb.StructuredAggregationQuery_Aggregation_Count{}}}},
		}},
	})
	if err != nil {
		return 0, err
	}
	total := int64(0)
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return int(total), nil
		}
		if err != nil {
			return 0, err
		}
		total += resp.GetResult().GetAggregateFields()[alias].GetIntegerValue()
	}
}

// from selects a collection; limit 0 = all of it.
func from(collection string, limit int) *pb.StructuredQuery {
	q := &pb.StructuredQuery{From: []*pb.StructuredQuery_CollectionSelector{{CollectionId: collection}}}
	if limit > 0 {
		q.Limit = wrapperspb.Int32(int32(min(limit, 1<<30))) //nolint:gosec // it fits
	}
	return q
}

// namesOnly selects names of documents, without what is in them.
func namesOnly(collection string, limit int) *pb.StructuredQuery {
	q := from(collection, limit)
	q.Select = &pb.StructuredQuery_Projection{Fields: []*pb.StructuredQuery_FieldReference{{FieldPath: "__name__"}}}
	return q
}

func by(field string, direction pb.StructuredQuery_Direction) *pb.StructuredQuery_Order {
	return &pb.StructuredQuery_Order{Field: &pb.StructuredQuery_FieldReference{FieldPath: field}, Direction: direction}
}
