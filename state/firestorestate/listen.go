package firestorestate

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/url"
	"slices"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/metadata"

	"github.com/jobhost/jobhost/state"
)

var errLate = errors.New("the server did not tell in time what there is")

// listen follows the job and its states until that fails; lived = it got what
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

	group, groupCtx := errgroup.WithContext(ctx)
	there := make(chan struct{}) // closed when the job was seen to be there
	group.Go(func() error {
		return s.watch(groupCtx, line.client, onlyDocument(l.job.name), func(b *batch) error {
			err := l.takeJob(b)
			if err == nil && b.first {
				close(there)
			}
			return err
		})
	})
	group.Go(func() error {
		return s.watch(groupCtx, line.client, allStates(l.job.name), func(b *batch) error {
			select {
			case <-there: // they are those of this job, not of one that was made after it
			case <-groupCtx.Done():
				return groupCtx.Err()
			}
			err := l.takeStates(b)
			if err == nil && b.first {
				late.Stop()
				lived = true
				l.nowLive()
			}
			return err
		})
	})
	err = group.Wait()
	if cause := context.Cause(ctx); errors.Is(cause, errLate) {
		err = cause
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lostLocked()
	return lived, err
}

func onlyDocument(name string) *pb.Target {
	return &pb.Target{TargetType: &pb.Target_Documents{Documents: &pb.Target_DocumentsTarget{Documents: []string{name}}}}
}

func allStates(job string) *pb.Target {
	return &pb.Target{TargetType: &pb.Target_Query{Query: &pb.Target_QueryTarget{
		Parent: job, QueryType: &pb.Target_QueryTarget_StructuredQuery{StructuredQuery: from(statesID, 0)},
	}}}
}

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

// takeJob looks whether the job is there by now, or still there.
func (l *listener) takeJob(b *batch) error {
	var now *jobDoc
	for _, d := range b.docs {
		var err error
		if now, err = decodeJob(d); err != nil {
			return err
		}
	}
	if !b.all && len(b.docs) == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ended != nil:
	case l.born.IsZero():
		if now != nil {
			_ = l.bornLocked(now) // its feeds get an error
		}
	case now == nil && !b.at.After(l.born), now != nil && now.born.Before(l.born):
		// That was before a write of this process made it, or in the same moment: emulators' clocks have milliseconds.
	case now == nil || !now.born.Equal(l.born) || !now.DeletedAt.IsZero():
		l.endLocked(state.ErrDeleted)
	}
	return nil
}

// takeStates hands over what has changed. States don't go one by one, so when one
// is gone or is another document than it was, the job was deleted.
func (l *listener) takeStates(b *batch) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended != nil {
		return nil
	}
	var news []state.State
	gone := b.all && slices.ContainsFunc(slices.Collect(maps.Keys(l.seen)), func(id string) bool {
		return b.docs[l.job.name+"/"+statesID+"/"+id] == nil
	})
	for name, d := range b.docs {
		seen := l.seen[lastOf(name)]
		if d == nil {
			gone = gone || seen.version > 0
			continue
		}
		s, ok := l.decode(d)
		if !ok {
			continue
		}
		born := d.GetCreateTime().AsTime()
		gone = gone || seen.version > 0 && (!born.Equal(seen.born) || s.Version < seen.version)
		if s.Version > seen.version {
			l.seen[lastOf(name)] = sight{s.Version, born}
			news = append(news, s)
		}
	}
	if gone {
		l.endLocked(state.ErrDeleted)
		return nil
	}
	slices.SortFunc(news, inTime)
	l.putLocked(slices.DeleteFunc(news, l.aheadLocked)...)
	l.wakeLocked()
	return nil
}

// aheadLocked reports whether the feeds have a state that the listener brings.
func (l *listener) aheadLocked(s state.State) bool {
	id := stateID(s.TaskID, s.Tag)
	ahead := l.ahead[id]
	if ahead <= s.Version {
		delete(l.ahead, id)
	}
	return ahead >= s.Version
}

func inTime(a, b state.State) int {
	return cmp.Or(a.Timestamp.Compare(b.Timestamp), cmp.Compare(a.Version, b.Version), cmp.Compare(a.TaskID, b.TaskID), cmp.Compare(a.Tag, b.Tag))
}

// wakeLocked lets those go whose writes have come.
func (l *listener) wakeLocked() {
	l.waits = slices.DeleteFunc(l.waits, func(w *wait) bool {
		if l.seen[w.id].version < w.version {
			return false
		}
		close(w.over)
		return true
	})
}
