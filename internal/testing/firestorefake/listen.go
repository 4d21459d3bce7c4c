package firestorefake

import (
	"slices"
	"strings"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Listen implements the service: one target per stream, until its client ends it.
// Changes superseded by later ones are left out.
func (s *Server) Listen(stream pb.Firestore_ListenServer) error {
	req, err := stream.Recv()
	if err != nil {
		return err
	}
	s.listens(1)
	defer s.listens(-1)
	l := &listening{Server: s, target: req.GetAddTarget(), stream: stream, sent: map[string]int{}}
	if l.target == nil || l.target.GetResumeType() != nil {
		return status.Error(codes.Unimplemented, "the fake adds targets, and resumes none")
	}
	if err := l.send(l.change(pb.TargetChange_ADD, l.target.GetTargetId())); err != nil {
		return err
	}
	for first := true; ; first = false {
		changed, list, err := l.news()
		if err != nil {
			return err
		}
		if first {
			list = append(list, l.change(pb.TargetChange_CURRENT, l.target.GetTargetId()))
		}
		if len(list) > 0 {
			list = append(list, l.change(pb.TargetChange_NO_CHANGE))
		}
		if err := l.send(list...); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

// listening is a stream with its target.
type listening struct {
	*Server
	target *pb.Target
	stream pb.Firestore_ListenServer
	sent   map[string]int         // the commit of each document that was sent to it
	at     *timestamppb.Timestamp // of the last look
}

// listens counts streams.
func (s *Server) listens(more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams += more
}

func (l *listening) send(list ...*pb.ListenResponse) error {
	for _, resp := range list {
		if err := l.stream.Send(resp); err != nil {
			return err
		}
	}
	return nil
}

// change is a change of the target itself, as of the last look at the documents.
func (l *listening) change(kind pb.TargetChange_TargetChangeType, targets ...int32) *pb.ListenResponse {
	return &pb.ListenResponse{ResponseType: &pb.ListenResponse_TargetChange{
		TargetChange: &pb.TargetChange{TargetChangeType: kind, TargetIds: targets, ReadTime: l.at},
	}}
}

// news returns what differs from what was sent to the stream, and a channel that
// is closed when there is more.
func (l *listening) news() (changed <-chan struct{}, list []*pb.ListenResponse, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = l.readLocked()
	var docs []*document
	if q := l.target.GetQuery(); q != nil {
		sel, err := l.selectLocked(q.GetParent(), q.GetStructuredQuery())
		if err != nil {
			return nil, nil, err
		}
		docs = sel.found
	}
	for _, name := range l.target.GetDocuments().GetDocuments() {
		if d := l.docLocked(name); d != nil {
			docs = append(docs, d)
		}
	}
	there := map[string]bool{}
	for _, d := range docs {
		there[d.GetName()] = true
		if l.sent[d.GetName()] != d.commit {
			l.sent[d.GetName()] = d.commit
			list = append(list, &pb.ListenResponse{ResponseType: &pb.ListenResponse_DocumentChange{
				DocumentChange: &pb.DocumentChange{Document: d.Document, TargetIds: []int32{l.target.GetTargetId()}},
			}})
		}
	}
	for name := range l.sent {
		if !there[name] {
			delete(l.sent, name)
			list = append(list, &pb.ListenResponse{ResponseType: &pb.ListenResponse_DocumentDelete{
				DocumentDelete: &pb.DocumentDelete{Document: name, RemovedTargetIds: []int32{l.target.GetTargetId()}},
			}})
		}
	}
	// In an order other than that of commits, which is not to be relied on.
	slices.SortFunc(list, func(a, b *pb.ListenResponse) int { return strings.Compare(nameOf(a), nameOf(b)) })
	return l.changed, list, nil
}

func nameOf(r *pb.ListenResponse) string {
	return r.GetDocumentChange().GetDocument().GetName() + r.GetDocumentDelete().GetDocument()
}
