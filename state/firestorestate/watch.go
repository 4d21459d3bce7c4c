package firestorestate

import (
	"context"
	"errors"
	"time"

	firestore "cloud.google.com/go/firestore/apiv1"
	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// batch is what has changed from one moment of the store to another.
type batch struct {
	docs  map[string]*pb.Document // by name; nil = it is gone
	at    time.Time               // the later moment
	all   bool                    // these are all that there are
	first bool                    // of this stream
}

var (
	errDrift   = errors.New("the server has other documents than it told")
	errRemoved = errors.New("the server ended the target")
)

// watch follows a target, and calls take at each moment at which what it got is
// a whole.
func (s *Store) watch(ctx context.Context, client *firestore.Client, target *pb.Target, take func(*batch) error) error {
	stream, err := client.Listen(ctx)
	if err != nil {
		return err
	}
	target.TargetId = 1
	req := &pb.ListenRequest{Database: s.path, TargetChange: &pb.ListenRequest_AddTarget{AddTarget: target}}
	if err := stream.Send(req); err != nil {
		_, err = stream.Recv() // which says why
		return err
	}
	w := watcher{take: take, first: true}
	w.reset()
	for {
		resp, err := stream.Recv()
		if err != nil {
			return err
		}
		if err := w.hear(resp); err != nil {
			return err
		}
	}
}

// watcher puts together what a stream tells of a target.
type watcher struct {
	take    func(*batch) error
	pending *batch
	have    map[string]bool // the documents of the target
	current bool            // all that there were have been told
	first   bool
}

// reset begins anew.
func (w *watcher) reset() {
	w.pending = &batch{docs: map[string]*pb.Document{}, all: true}
	w.have, w.current = map[string]bool{}, false
}

func (w *watcher) hear(resp *pb.ListenResponse) error {
	switch r := resp.GetResponseType().(type) {
	case *pb.ListenResponse_DocumentChange:
		d := r.DocumentChange.GetDocument()
		if len(r.DocumentChange.GetTargetIds()) == 0 {
			w.gone(d.GetName())
			break
		}
		w.pending.docs[d.GetName()], w.have[d.GetName()] = d, true
	case *pb.ListenResponse_DocumentDelete:
		w.gone(r.DocumentDelete.GetDocument())
	case *pb.ListenResponse_DocumentRemove:
		w.gone(r.DocumentRemove.GetDocument())
	case *pb.ListenResponse_Filter:
		if int(r.Filter.GetCount()) != len(w.have) {
			return errDrift
		}
	case *pb.ListenResponse_TargetChange:
		return w.turn(r.TargetChange)
	}
	return nil
}

func (w *watcher) gone(name string) {
	delete(w.have, name)
	w.pending.docs[name] = nil
}

// turn takes a change of the target itself.
func (w *watcher) turn(c *pb.TargetChange) error {
	switch c.GetTargetChangeType() {
	case pb.TargetChange_CURRENT:
		w.current = true
	case pb.TargetChange_RESET:
		w.reset()
	case pb.TargetChange_REMOVE:
		if cause := c.GetCause(); cause != nil {
			return status.Error(codes.Code(cause.GetCode()), cause.GetMessage()) //nolint:gosec // a code of gRPC
		}
		return errRemoved
	case pb.TargetChange_NO_CHANGE:
		if !w.current || len(c.GetTargetIds()) > 0 || c.GetReadTime() == nil {
			return nil
		}
		b := w.pending
		b.at = c.GetReadTime().AsTime()
		b.first, w.first = w.first, false
		w.pending = &batch{docs: map[string]*pb.Document{}}
		return w.take(b)
	}
	return nil
}
