package firestorestate

import (
	"context"
	"errors"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/google/uuid"

	"github.com/jobhost/jobhost/state"
)

// source is a [state.Source]: one of the feeds of a listener.
type source struct {
	store *Store
	*listener
}

// openTries is how often a job may be deleted while it is being opened.
const openTries = 10

// Open implements [state.Store].
func (s *Store) Open(ctx context.Context, job state.Job, tasks int, feed state.Feed) (state.Source, error) {
	for tries := 0; ; tries++ {
		if s.isClosed() {
			return nil, state.ErrClosed
		}
		doc, err := s.find(ctx, job, tasks)
		if err != nil {
			return nil, err
		}
		src, err := s.follow(ctx, doc, feed)
		if again := errors.Is(err, state.ErrDeleted) || errors.Is(err, errStale); again && tries < openTries {
			continue // it was made, deleted or marked in between
		}
		if err != nil {
			return nil, err
		}
		return src, nil
	}
}

// follow adds a feed to the listener of a job. The first one begins with what the
// listener gets; what later ones begin with is read for them.
func (s *Store) follow(ctx context.Context, doc *jobDoc, feed state.Feed) (*source, error) {
	src := &source{store: s}
	told, err := s.join(src, doc, feed)
	if err != nil {
		return nil, err
	}
	if told {
		err = src.list(ctx, feed)
	} else {
		select {
		case <-src.ready:
			err = src.Err()
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if err != nil {
		_ = src.Close()
		return nil, err
	}
	return src, nil
}

// join makes a source one of the job's listener, which it starts if need be; told =
// the listener has handed over what there is.
func (s *Store) join(src *source, doc *jobDoc, feed state.Feed) (told bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false, state.ErrClosed
	}
	key := doc.Key()
	if l := s.listeners[key]; l != nil {
		told, err := l.add(src, doc, feed)
		if err == nil {
			src.listener = l
			return told, nil
		}
		if errors.Is(err, errStale) {
			return false, err
		} // else it has ended, and another begins
	}
	l := newListener(s, doc)
	l.feeds[src] = feed
	src.listener = l
	s.listeners[key] = l
	go l.run()
	return false, nil
}

// list hands all states to a feed.
func (s *source) list(ctx context.Context, feed state.Feed) error {
	var docs []*pb.Document
	err := s.store.retry(ctx, s.store.opts.ListTimeout, func(ctx context.Context) (err error) {
		docs, err = s.store.query(ctx, nil, s.job.name, from(statesID, 0))
		return err
	})
	if err != nil {
		return err
	}
	states := make([]state.State, 0, len(docs))
	for _, d := range docs {
		if st, ok := s.decode(d); ok {
			states = append(states, st)
		}
	}
	feed.Put(states...)
	return s.Err()
}

// Tasks implements [state.Source].
func (s *source) Tasks() int { return s.job.Tasks }

// Close implements [state.Source].
func (s *source) Close() error {
	if s.leave(s) {
		<-s.done
	}
	return nil
}

// Set implements [state.Source].
func (s *source) Set(ctx context.Context, st state.State) (state.State, error) {
	if err := s.Err(); err != nil {
		return state.State{}, err
	}
	stored, err := s.write(ctx, st)
	if err != nil {
		return state.State{}, err
	}
	s.await(ctx, stored)
	return stored, nil
}

// write makes a state durable. A write that is tried again has the EventID of the
// first try, and so is made once, whatever became of that.
func (s *source) write(ctx context.Context, st state.State) (state.State, error) {
	if st.EventID == "" {
		st.EventID = newID()
	}
	turn, err := s.turn(ctx, stateID(st.TaskID, st.Tag))
	if err != nil {
		return state.State{}, err
	}
	defer turn()
	first, err := s.first(ctx)
	if err != nil {
		return state.State{}, err
	}
	defer first()
	name := s.job.name + "/" + statesID + "/" + stateID(st.TaskID, st.Tag)
	var stored state.State
	var next *pb.Document
	var makes bool
	resp, err := s.store.transact(ctx, func(ctx context.Context, t *tx) ([]*pb.Write, error) {
		expected := s.expecting()
		docs, err := t.get(ctx, s.job.name, name)
		if err != nil {
			return nil, err
		}
		job, err := decodeJob(docs[0])
		if err != nil {
			return nil, err
		}
		if err := s.check(job, expected); err != nil {
			return nil, err
		}
		stored = state.State{}
		if docs[1] != nil {
			if stored, err = decodeState(s.job.Job, docs[1]); err != nil {
				return nil, err
			}
			if stored.EventID == st.EventID {
				return nil, nil
			}
		}
		st.Version = stored.Version + 1
		next = &pb.Document{Name: name, Fields: encodeState(&st)}
		writes := []*pb.Write{{Operation: &pb.Write_Update{Update: next}, UpdateTransforms: serverTime(fieldTime)}}
		if makes = job == nil; makes {
			writes = append(writes, createJob(s.job.name, s.job.Tasks))
		}
		return writes, nil
	})
	if err != nil {
		return state.State{}, err
	}
	if resp == nil {
		return stored, nil
	}
	if results := resp.GetWriteResults(); makes && len(results) == 2 {
		s.made(results[1].GetUpdateTime().AsTime()) // at first that is when it was made
	}
	return decodeState(s.job.Job, written(next, resp))
}

// first has one write of this process make a job that isn't there, while others wait for
// it: together they would only conflict.
func (s *source) first(ctx context.Context) (release func(), err error) {
	if !s.expecting() {
		return func() {}, nil
	}
	release, err = s.turn(ctx, "") // which is no state's id
	if err == nil && !s.expecting() {
		release()
		release = func() {}
	}
	return release, err
}

// written is a document as it is after a commit that wrote it first, with the server's time.
func written(d *pb.Document, resp *pb.CommitResponse) *pb.Document {
	for _, r := range resp.GetWriteResults()[:min(1, len(resp.GetWriteResults()))] {
		d.UpdateTime = r.GetUpdateTime()
		for _, v := range r.GetTransformResults() {
			d.Fields[fieldTime] = v
		}
	}
	return d
}

// newID returns an id for a write that has none.
func newID() string {
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.NewString()
	}
	return id.String()
}
