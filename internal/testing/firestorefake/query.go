package firestorefake

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// selection is a query that was run, with its result.
type selection struct {
	parent string
	query  *pb.StructuredQuery
	found  []*document
}

const byName = "__name__"

// selectLocked runs a query of one collection, ordered by at most one field, which
// is a time or the name.
func (s *Server) selectLocked(parent string, q *pb.StructuredQuery) (*selection, error) {
	if len(q.GetFrom()) != 1 || q.GetWhere() != nil || q.GetEndAt() != nil || q.GetOffset() != 0 || len(q.GetOrderBy()) > 1 {
		return nil, status.Error(codes.Unimplemented, "the fake knows no such query")
	}
	sel := &selection{parent: parent, query: q}
	sel.found = sel.runLocked(s)
	return sel, nil
}

func (q *selection) runLocked(s *Server) []*document {
	collection := q.parent + "/" + q.query.GetFrom()[0].GetCollectionId()
	field, sign := byName, 1
	for _, o := range q.query.GetOrderBy() {
		field = o.GetField().GetFieldPath()
		if o.GetDirection() == pb.StructuredQuery_DESCENDING {
			sign = -1
		}
	}
	var found []*document
	for _, d := range s.docs[collection] {
		if field != byName && d.GetFields()[field] == nil {
			continue
		}
		if c := q.query.GetStartAt(); c != nil {
			side := sign * compare(d, field, c.GetValues()[0])
			if side < 0 || side == 0 && !c.GetBefore() {
				continue
			}
		}
		found = append(found, d)
	}
	slices.SortFunc(found, func(a, b *document) int {
		return sign * cmp.Or(compare(a, field, b.GetFields()[field]), strings.Compare(a.GetName(), b.GetName()))
	})
	if limit := q.query.GetLimit(); limit != nil {
		found = found[:min(len(found), int(limit.GetValue()))]
	}
	return found
}

// compare compares a field of a document, which is a time or the name.
func compare(d *document, field string, v *pb.Value) int {
	if field == byName {
		if v == nil {
			return 0
		}
		return strings.Compare(d.GetName(), v.GetReferenceValue())
	}
	return d.GetFields()[field].GetTimestampValue().AsTime().Compare(v.GetTimestampValue().AsTime())
}

// same reports whether the query still finds what it found.
func (q *selection) same(now []*document) bool {
	return slices.EqualFunc(q.found, now, func(a, b *document) bool { return a.GetName() == b.GetName() && a.commit == b.commit })
}

// RunQuery implements the service.
func (s *Server) RunQuery(req *pb.RunQueryRequest, stream pb.Firestore_RunQueryServer) error {
	sel, err := s.find(req.GetParent(), req.GetStructuredQuery(), req.GetTransaction())
	if err != nil {
		return err
	}
	now := timestamppb.Now()
	for _, d := range sel.found {
		if err := stream.Send(&pb.RunQueryResponse{Document: project(d.Document, sel.query.GetSelect()), ReadTime: now}); err != nil {
			return err
		}
	}
	if len(sel.found) == 0 {
		return stream.Send(&pb.RunQueryResponse{ReadTime: now})
	}
	return nil
}

func (s *Server) find(parent string, q *pb.StructuredQuery, tx []byte) (*selection, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.txLocked(tx)
	if err != nil {
		return nil, err
	}
	sel, err := s.selectLocked(parent, q)
	if err == nil && t != nil {
		t.queries = append(t.queries, sel)
	}
	return sel, err
}

// project returns a document with the requested fields.
func project(d *pb.Document, p *pb.StructuredQuery_Projection) *pb.Document {
	if p == nil {
		return d
	}
	fields := maps.Clone(d.GetFields())
	maps.DeleteFunc(fields, func(name string, _ *pb.Value) bool {
		return !slices.ContainsFunc(p.GetFields(), func(f *pb.StructuredQuery_FieldReference) bool { return f.GetFieldPath() == name })
	})
	return &pb.Document{Name: d.GetName(), CreateTime: d.GetCreateTime(), UpdateTime: d.GetUpdateTime(), Fields: fields}
}

// RunAggregationQuery implements the service: it counts.
func (s *Server) RunAggregationQuery(req *pb.RunAggregationQueryRequest, stream pb.Firestore_RunAggregationQueryServer) error {
	q := req.GetStructuredAggregationQuery()
	sel, err := s.find(req.GetParent(), q.GetStructuredQuery(), req.GetTransaction())
	if err != nil {
		return err
	}
	result := &pb.AggregationResult{AggregateFields: map[string]*pb.Value{}}
	for _, a := range q.GetAggregations() {
		if a.GetCount() == nil {
			return status.Error(codes.Unimplemented, "the fake only counts")
		}
		result.AggregateFields[a.GetAlias()] = &pb.Value{ValueType: &pb.Value_IntegerValue{IntegerValue: int64(len(sel.found))}}
	}
	return stream.Send(&pb.RunAggregationQueryResponse{Result: result, ReadTime: timestamppb.Now()})
}
