package firestorestate

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// The messages that a server sends, by short names.
func doc(name string) *pb.ListenResponse {
	return &pb.ListenResponse{ResponseType: &pb.ListenResponse_DocumentChange{
		DocumentChange: &pb.DocumentChange{Document: &pb.Document{Name: name}, TargetIds: []int32{1}},
	}}
}

func gone(name string) *pb.ListenResponse {
	return &pb.ListenResponse{ResponseType: &pb.ListenResponse_DocumentDelete{DocumentDelete: &pb.DocumentDelete{Document: name}}}
}

func out(name string) *pb.ListenResponse {
	return &pb.ListenResponse{ResponseType: &pb.ListenResponse_DocumentRemove{DocumentRemove: &pb.DocumentRemove{Document: name}}}
}

func count(n int32) *pb.ListenResponse {
	return &pb.ListenResponse{ResponseType: &pb.ListenResponse_Filter{Filter: &pb.ExistenceFilter{Count: n}}}
}

func target(c *pb.TargetChange) *pb.ListenResponse {
	return &pb.ListenResponse{ResponseType: &pb.ListenResponse_TargetChange{TargetChange: c}}
}

func whole() *pb.ListenResponse { return target(&pb.TargetChange{ReadTime: timestamppb.Now()}) }

func TestWatcher(t *testing.T) {
	t.Parallel()
	current := target(&pb.TargetChange{TargetChangeType: pb.TargetChange_CURRENT, TargetIds: []int32{1}})
	reset := target(&pb.TargetChange{TargetChangeType: pb.TargetChange_RESET, TargetIds: []int32{1}})
	removed := target(&pb.TargetChange{TargetChangeType: pb.TargetChange_REMOVE, Cause: &rpc.Status{Code: int32(codes.PermissionDenied), Message: "no"}})
	for _, c := range []struct {
		name string
		in   []*pb.ListenResponse
		want []string // the batches
		err  error
	}{
		{name: "nothing is a whole before all was told", in: []*pb.ListenResponse{doc("a"), whole(), doc("b")}},
		{name: "what there is, then changes", in: []*pb.ListenResponse{doc("a"), doc("b"), current, whole(), doc("a"), gone("b"), whole()}, want: []string{"first all a b", "a -b"}},
		{name: "a target's own time is no moment of the whole", in: []*pb.ListenResponse{current, target(&pb.TargetChange{TargetIds: []int32{1}, ReadTime: timestamppb.Now()})}},
		{name: "reset forgets what was told", in: []*pb.ListenResponse{doc("a"), current, whole(), doc("b"), reset, whole(), doc("c"), count(1), current, whole()}, want: []string{"first all a", "all c"}},
		{name: "out of the target is gone", in: []*pb.ListenResponse{doc("a"), current, out("a"), count(0), whole()}, want: []string{"first all -a"}},
		{name: "a count that differs", in: []*pb.ListenResponse{doc("a"), current, whole(), count(2)}, want: []string{"first all a"}, err: errDrift},
		{name: "the target is ended", in: []*pb.ListenResponse{removed}, err: status.Error(codes.PermissionDenied, "no")},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			w := watcher{first: true, take: func(b *batch) error {
				got = append(got, b.String())
				return nil
			}}
			w.reset()
			var err error
			for _, resp := range c.in {
				if err = w.hear(resp); err != nil {
					break
				}
			}
			if !slices.Equal(got, c.want) || !errors.Is(err, c.err) {
				t.Errorf("got %q, %v, want %q, %v", got, err, c.want, c.err)
			}
		})
	}
}

// String writes a batch as tests compare it.
func (b *batch) String() string {
	var names []string
	for name, d := range b.docs {
		if d == nil {
			names = append(names, "-"+name)
		} else {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(x, y string) int { return int(x[len(x)-1]) - int(y[len(y)-1]) })
	if b.all {
		names = slices.Insert(names, 0, "all")
	}
	if b.first {
		names = slices.Insert(names, 0, "first")
	}
	text := fmt.Sprint(names)
	return text[1 : len(text)-1]
}
