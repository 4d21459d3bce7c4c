// Package firestorefake is a small in-memory server of the Firestore protocol, for
// tests of what the emulator on npm doesn't do: transactions that are aborted if
// what they read has changed, writes that replace, atomic batches, cursors. It is
// as strict as Firestore: what that refuses to store is refused here.
//
// It supports the calls that state/firestorestate makes, and no others.
package firestorefake

import (
	"bytes"
	"context"
	"encoding/binary"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Server implements the service. The zero value is not usable: see [New].
type Server struct {
	pb.UnimplementedFirestoreServer

	mu      sync.Mutex                      // protects the fields below
	docs    map[string]map[string]*document // by collection and name
	removed map[string]int                  // the commit that removed each document, by name
	txs     map[string]*transaction
	number  uint64        // of the last transaction
	commits int           // that wrote something
	aborted int           // commits that conflicted
	streams int           // that are listening
	now     time.Time     // of the last commit or read
	frozen  bool          // now stays what it is
	changed chan struct{} // closed by the next commit
}

// document is an existing document. It is never modified, only replaced.
type document struct {
	*pb.Document
	commit int // that wrote it
}

// New returns a server without documents.
func New() *Server {
	return &Server{
		docs: map[string]map[string]*document{}, removed: map[string]int{}, txs: map[string]*transaction{}, changed: make(chan struct{}),
	}
}

// Commits returns how many commits there were, and how many were aborted.
func (s *Server) Commits() (made, aborted int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commits, s.aborted
}

// Freeze stops the clock: all reads and commits have the same time from now on. That is how things that happen within
// a millisecond look with emulators whose clocks are no finer.
func (s *Server) Freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readLocked()
	s.frozen = true
}

// Listening returns how many streams are listening.
func (s *Server) Listening() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams
}

// Document returns a copy of a document by the end of its name; nil = there is none.
func (s *Server) Document(end string) *pb.Document {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, docs := range s.docs {
		for name, d := range docs {
			if strings.HasSuffix(name, "/documents/"+end) {
				return proto.CloneOf(d.Document)
			}
		}
	}
	return nil
}

// Commit implements the service: all of the writes, or none.
func (s *Server) Commit(_ context.Context, req *pb.CommitRequest) (*pb.CommitResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id := req.GetTransaction(); len(id) > 0 {
		t := s.txs[string(id)]
		delete(s.txs, string(id))
		if t == nil {
			return nil, status.Error(codes.InvalidArgument, "The referenced transaction has expired or is no longer valid.")
		}
		if !t.holdsLocked(s) {
			s.aborted++
			return nil, status.Error(codes.Aborted, "Too much contention on these documents. Please try again.")
		}
	}
	if !s.frozen {
		s.now = later(s.now)
	}
	w := writing{Server: s, after: map[string]*pb.Document{}}
	resp := &pb.CommitResponse{CommitTime: timestamppb.New(s.now)}
	for _, write := range req.GetWrites() {
		result, err := w.apply(write)
		if err != nil {
			return nil, err
		}
		resp.WriteResults = append(resp.WriteResults, result)
	}
	if len(req.GetWrites()) > 0 {
		s.commits++
		for name, d := range w.after {
			s.replaceLocked(name, d)
		}
		close(s.changed)
		s.changed = make(chan struct{})
	}
	return resp, nil
}

// replaceLocked replaces a document; nil removes it.
func (s *Server) replaceLocked(name string, d *pb.Document) {
	docs := s.docs[path.Dir(name)]
	if docs == nil {
		docs = map[string]*document{}
		s.docs[path.Dir(name)] = docs
	}
	if delete(docs, name); d != nil {
		docs[name] = &document{Document: d, commit: s.commits}
	} else {
		s.removed[name] = s.commits
	}
}

// docLocked returns a document; nil = there is none.
func (s *Server) docLocked(name string) *document { return s.docs[path.Dir(name)][name] }

// later returns a time later than any commit.
func later(last time.Time) time.Time {
	now := time.Now().UTC().Truncate(time.Microsecond)
	if !now.After(last) {
		return last.Add(time.Microsecond)
	}
	return now
}

// readLocked returns the time of a read: anything it doesn't see is committed later.
func (s *Server) readLocked() *timestamppb.Timestamp {
	if now := time.Now().UTC().Truncate(time.Microsecond); now.After(s.now) && !s.frozen {
		s.now = now
	}
	return timestamppb.New(s.now)
}

// Rollback implements the service.
func (s *Server) Rollback(_ context.Context, req *pb.RollbackRequest) (*emptypb.Empty, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.txs, string(req.GetTransaction()))
	return &emptypb.Empty{}, nil
}

// transaction remembers what was read in it, which must be unchanged when it is
// committed.
type transaction struct {
	docs    map[string]int // the commit of each document; 0 or less = it didn't exist
	queries []*selection
}

// holdsLocked reports whether everything the transaction has read is unchanged.
func (t *transaction) holdsLocked(s *Server) bool {
	for name, commit := range t.docs {
		if s.commitLocked(name) != commit {
			return false
		}
	}
	return !slices.ContainsFunc(t.queries, func(q *selection) bool { return !q.same(q.runLocked(s)) })
}

func (s *Server) commitLocked(name string) int {
	if d := s.docLocked(name); d != nil {
		return d.commit
	}
	return -s.removed[name]
}

// beginLocked begins a transaction.
func (s *Server) beginLocked() (id []byte, t *transaction) {
	s.number++
	id = binary.BigEndian.AppendUint64(nil, s.number)
	t = &transaction{docs: map[string]int{}}
	s.txs[string(id)] = t
	return id, t
}

// txLocked finds a transaction; nil without an error if id is empty.
func (s *Server) txLocked(id []byte) (*transaction, error) {
	if len(id) == 0 {
		return nil, nil //nolint:nilnil // a read outside transactions
	}
	if t := s.txs[string(bytes.Clone(id))]; t != nil {
		return t, nil
	}
	return nil, status.Error(codes.InvalidArgument, "The referenced transaction has expired or is no longer valid.")
}

// BatchGetDocuments implements the service.
func (s *Server) BatchGetDocuments(req *pb.BatchGetDocumentsRequest, stream pb.Firestore_BatchGetDocumentsServer) error {
	list, err := s.get(req)
	for _, resp := range list {
		if err == nil {
			err = stream.Send(resp)
		}
	}
	return err
}

func (s *Server) get(req *pb.BatchGetDocumentsRequest) ([]*pb.BatchGetDocumentsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*pb.BatchGetDocumentsResponse
	t, err := s.txLocked(req.GetTransaction())
	if err != nil {
		return nil, err
	}
	if req.GetNewTransaction() != nil {
		var id []byte
		id, t = s.beginLocked()
		list = append(list, &pb.BatchGetDocumentsResponse{Transaction: id})
	}
	for _, name := range req.GetDocuments() {
		resp := &pb.BatchGetDocumentsResponse{ReadTime: s.readLocked(), Result: &pb.BatchGetDocumentsResponse_Missing{Missing: name}}
		if d := s.docLocked(name); d != nil {
			resp.Result = &pb.BatchGetDocumentsResponse_Found{Found: d.Document}
		}
		if t != nil {
			t.docs[name] = s.commitLocked(name)
		}
		list = append(list, resp)
	}
	slices.Reverse(list[min(1, len(list)):]) // they come in any order
	return list, nil
}
