package firestorestate

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/metadata"

	"github.com/jobhost/jobhost/state"
)

var errLate = errors.New("the server did not tell in time what there is")

// listen follows the job and its states until that fails; lived = it was told what
// there is.
func (l *listener) listen(ctx context.Context) (lived bool, err error) {
	s := l.store
	line, err := s.lines.take(ctx)
	if err != nil {
		return false, err
	}
	defer s.lines.give(line)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(s.opts.ListTimeout, func() { cancel(errLate) })
	defer late.Stop()
	ctx = metadata.AppendToOutgoingContext(ctx, "google-cloud-resource-prefix", s.path,
		"x-goog-request-params", "project_id="+url.QueryEscape(s.opts.Project)+"&database_id="+url.QueryEscape(s.opts.Database))

	var current atomic.Int32 // targets that were told what there is
	group, groupCtx := errgroup.WithContext(ctx)
	follow := func(target *pb.Target, take func(*batch) error) {
		group.Go(func() error {
			return s.watch(groupCtx, line.client, target, func(b *batch) error {
				if err := take(b); err != nil {
					return err
				}
				if b.first && current.Add(1) == targets {
					late.Stop()
					l.nowLive()
				}
				return nil
			})
		})
	}
	follow(&pb.Target{TargetType: &pb.Target_Documents{Documents: &pb.Target_DocumentsTarget{Documents: []string{l.job.name}}}}, l.takeJob)
	follow(&pb.Target{TargetType: &pb.Target_Query{Query: &pb.Target_QueryTarget{
		Parent: l.job.name, QueryType: &pb.Target_QueryTarget_StructuredQuery{StructuredQuery: from(statesID, 0)},
	}}}, l.takeStates)
	err = group.Wait()
	if cause := context.Cause(ctx); errors.Is(cause, errLate) {
		err = cause
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lostLocked()
	return current.Load() == targets, err
}

// targets is how many a job has: its document and its states.
const targets = 2

// nowLive tells who waits that what there is was handed over.
func (l *listener) nowLive() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended != nil {
		return
	}
	l.live = true
	if !l.told {
		l.told = true
		close(l.ready)
	}
}

// takeJob looks whether the job is still there.
func (l *listener) takeJob(b *batch) error {
	var now *jobDoc
	for _, d := range b.docs {
		var err error
		if now, err = decodeJob(d); err != nil {
			return err
		}
	}
	if (b.all || len(b.docs) > 0) && !l.job.same(now) {
		l.end(state.ErrDeleted)
	}
	return nil
}

// takeStates hands over what has changed. States don't go one by one, so when one
// is gone, or its version is lower, the job was deleted.
func (l *listener) takeStates(b *batch) error {
	var docs []*pb.Document
	gone := false
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, d := range b.docs {
		if d != nil {
			docs = append(docs, d)
		} else if l.seen[lastOf(name)] > 0 {
			gone = true
		}
	}
	var news []state.State
	for _, s := range l.decode(docs) {
		id := stateID(s.TaskID, s.Tag)
		switch seen := l.seen[id]; {
		case s.Version < seen:
			gone = true
		case s.Version > seen:
			news = append(news, s)
		}
	}
	if b.all {
		for id := range l.seen {
			gone = gone || b.docs[l.job.name+"/"+statesID+"/"+id] == nil
		}
	}
	if gone {
		l.endLocked(state.ErrDeleted)
		return nil
	}
	slices.SortFunc(news, inTime)
	l.putLocked(news...)
	for i := range news {
		l.seen[stateID(news[i].TaskID, news[i].Tag)] = news[i].Version
	}
	l.wakeLocked()
	return nil
}

func inTime(a, b state.State) int {
	return cmp.Or(a.Timestamp.Compare(b.Timestamp), cmp.Compare(a.Version, b.Version), cmp.Compare(a.TaskID, b.TaskID), cmp.Compare(a.Tag, b.Tag))
}

// wakeLocked lets those go whose writes have come.
func (l *listener) wakeLocked() {
	l.waits = slices.DeleteFunc(l.waits, func(w *wait) bool {
		if l.seen[w.id] < w.version {
			return false
		}
		close(w.over)
		return true
	})
}
