package firestorestate

import (
	"context"
	"errors"
	"io"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/state"
)

// tx is a transaction: what was read in it is as it was when the writes are made.
type tx struct {
	store *Store
	id    []byte // begins with the first read
	again []byte // the id of the try before
}

// transact runs a transaction until it is committed, or do fails. What do reads and
// writes it may read and write several times. Without writes nothing is committed,
// and the response is nil.
func (s *Store) transact(ctx context.Context, do func(context.Context, *tx) ([]*pb.Write, error)) (*pb.CommitResponse, error) {
	var resp *pb.CommitResponse
	var before []byte
	err := s.retry(ctx, s.opts.CallTimeout, func(ctx context.Context) error {
		t := &tx{store: s, again: before}
		writes, err := do(ctx, t)
		before = t.id
		if err != nil || len(writes) == 0 {
			t.rollback(ctx)
			return err
		}
		resp, err = s.client.Commit(ctx, &pb.CommitRequest{Database: s.path, Writes: writes, Transaction: t.id})
		return err
	})
	return resp, err
}

// get reads documents in a transaction; nil = it isn't there.
func (t *tx) get(ctx context.Context, names ...string) ([]*pb.Document, error) {
	docs, _, err := t.store.get(ctx, t, names...)
	return docs, err
}

// get reads documents, in a transaction or, with nil, in none, and returns the moment at
// which they were so; nil = it wasn't there.
func (s *Store) get(ctx context.Context, t *tx, names ...string) (docs []*pb.Document, at time.Time, err error) {
	req := &pb.BatchGetDocumentsRequest{Database: s.path, Documents: names}
	switch {
	case t == nil:
	case t.id == nil:
		req.ConsistencySelector = &pb.BatchGetDocumentsRequest_NewTransaction{NewTransaction: &pb.TransactionOptions{
			Mode: &pb.TransactionOptions_ReadWrite_{ReadWrite: &pb.TransactionOptions_ReadWrite{RetryTransaction: t.again}},
		}}
	default:
		req.ConsistencySelector = &pb.BatchGetDocumentsRequest_Transaction{Transaction: t.id}
	}
	ctx, cancel := context.WithCancel(ctx) // ends the stream
	defer cancel()
	stream, err := s.client.BatchGetDocuments(ctx, req)
	if err != nil {
		return nil, at, err
	}
	found := map[string]*pb.Document{}
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, at, err
		}
		if t != nil && len(resp.GetTransaction()) > 0 {
			t.id = resp.GetTransaction()
		}
		if read := resp.GetReadTime(); read != nil {
			at = read.AsTime()
		}
		if d := resp.GetFound(); d != nil {
			found[d.GetName()] = d
		}
	}
	for _, name := range names {
		docs = append(docs, found[name])
	}
	return docs, at, nil
}

// rollback lets go of what others may wait for.
func (t *tx) rollback(ctx context.Context) {
	if t.id != nil && ctx.Err() == nil {
		_ = t.store.client.Rollback(ctx, &pb.RollbackRequest{Database: t.store.path, Transaction: t.id})
	}
}

// query reads the documents that a query selects, in a transaction or, with nil,
// in none.
func (s *Store) query(ctx context.Context, t *tx, parent string, q *pb.StructuredQuery) ([]*pb.Document, error) {
	req := &pb.RunQueryRequest{Parent: parent, QueryType: &pb.RunQueryRequest_StructuredQuery{StructuredQuery: q}}
	if t != nil {
		req.ConsistencySelector = &pb.RunQueryRequest_Transaction{Transaction: t.id}
	}
	ctx, cancel := context.WithCancel(ctx) // ends the stream
	defer cancel()
	stream, err := s.client.RunQuery(ctx, req)
	if err != nil {
		return nil, err
	}
	var docs []*pb.Document
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, err
		}
		if d := resp.GetDocument(); d != nil {
			docs = append(docs, d)
		}
	}
}

// The pauses between two tries.
const (
	firstPause = 20 * time.Millisecond
	maxPause   = 2 * time.Second
)

// retry calls do until it succeeds, fails for good, or the time is over; each try may
// take so long. Its error is one for people.
func (s *Store) retry(ctx context.Context, each time.Duration, do func(context.Context) error) error {
	end := time.Now().Add(s.opts.RetryFor)
	within, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	within = metadata.AppendToOutgoingContext(within, "google-cloud-resource-prefix", s.path)
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := try(within, each, do)
		if err == nil {
			return nil
		}
		wait := spread(pause, 0.5)
		if within.Err() != nil || !passes(err) || time.Now().Add(wait).After(end) {
			return s.fault(ctx, err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func try(ctx context.Context, each time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, each)
	defer cancel()
	return do(ctx)
}

// passes reports whether it may be better the next time.
func passes(err error) bool {
	if errors.As(err, new(*jobhost.Error)) {
		return false
	}
	switch status.Code(err) {
	case codes.Aborted, codes.AlreadyExists, codes.DeadlineExceeded, codes.Internal, codes.ResourceExhausted, codes.Unavailable, codes.Unknown:
		return true
	}
	return false
}

// fault makes an error of Firestore's one for people.
func (s *Store) fault(ctx context.Context, err error) error {
	if s.isClosed() {
		return state.ErrClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.As(err, new(*jobhost.Error)) {
		return err
	}
	e := &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "Firestore does not answer", Cause: err}
	switch status.Code(err) {
	case codes.PermissionDenied, codes.Unauthenticated:
		e.Code, e.Message = jobhost.CodeInternal, "Firestore does not let us"
		e.Hint = "give the service account the role Cloud Datastore User (roles/datastore.user) in the project"
	case codes.NotFound:
		e.Code, e.Message = jobhost.CodeInternal, "there is no such Firestore database"
		e.Hint = "make one in Native mode, and name it"
	case codes.InvalidArgument, codes.FailedPrecondition, codes.OutOfRange:
		e.Code, e.Message = jobhost.CodeInvalid, "Firestore refuses this"
		e.Hint = "with large payloads: exempt the field payload of the collection states from indexes"
	}
	return e
}
