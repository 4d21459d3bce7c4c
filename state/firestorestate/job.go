package firestorestate

import (
	"context"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/state"
)

// The fields of a job's document.
const (
	fieldTasks   = "numTasks"
	fieldCreated = "createdAt"
	fieldDeleted = "deleted"
)

// jobDoc is the document of a job.
type jobDoc struct {
	state.Info
	name string
	// born is when the document was made: another one with its name has another. Zero =
	// it isn't there yet.
	born time.Time
	read time.Time // when it was as it is here
}

// decodeJob reads the document of a job; nil when there is none.
func decodeJob(d *pb.Document) (*jobDoc, error) {
	if d == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	f := d.GetFields()
	tasks, ok := intOf(f[fieldTasks])
	if !ok || tasks < 1 || tasks > jobhost.MaxTasks {
		return nil, &jobhost.Error{Code: jobhost.CodeInternal, Message: "the document " + d.GetName() + " is not that of a job", Field: fieldTasks}
	}
	j := &jobDoc{name: d.GetName(), born: d.GetCreateTime().AsTime()}
	j.Job, j.Tasks = state.ParseKey(lastOf(d.GetName())), int(tasks)
	j.CreatedAt = timeOf(f[fieldCreated], d.GetCreateTime())
	if v := f[fieldDeleted]; v.GetTimestampValue() != nil || v.GetBooleanValue() { // true is what others may write
		j.DeletedAt = timeOf(v, d.GetUpdateTime())
	}
	return j, nil
}

// getJob reads the document of a job in a transaction.
func (t *tx) getJob(ctx context.Context, job state.Job) (*jobDoc, error) {
	docs, err := t.get(ctx, t.store.jobName(job))
	if err != nil {
		return nil, err
	}
	return decodeJob(docs[0])
}

// find reads the document of a job. A look makes none: one that isn't there yet has so
// many tasks, or as many as it is followed with in this process, and is made with its
// first state.
func (s *Store) find(ctx context.Context, job state.Job, tasks int) (*jobDoc, error) {
	var doc *jobDoc
	var at time.Time
	err := s.retry(ctx, s.opts.CallTimeout, func(ctx context.Context) error {
		docs, read, err := s.get(ctx, nil, s.jobName(job))
		if err != nil {
			return err
		}
		at = read
		doc, err = decodeJob(docs[0])
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case doc == nil:
		if n := s.expected(job); n > 0 {
			tasks = n
		}
		if tasks == 0 {
			return nil, state.NotFound(job)
		}
		doc = &jobDoc{Info: state.Info{Job: job, Tasks: tasks}, name: s.jobName(job)}
	case !doc.DeletedAt.IsZero():
		return nil, state.Marked(job)
	}
	doc.read = at
	return doc, nil
}

// expected returns the number of tasks of a job that isn't there yet and is followed in
// this process; 0 = it isn't followed.
func (s *Store) expected(job state.Job) int {
	s.mu.Lock()
	l := s.listeners[job.Key()]
	s.mu.Unlock()
	if l == nil || !l.expecting() {
		return 0
	}
	return l.job.Tasks
}

func createJob(name string, tasks int) *pb.Write {
	return &pb.Write{
		Operation:        &pb.Write_Update{Update: &pb.Document{Name: name, Fields: map[string]*pb.Value{fieldTasks: integer(int64(tasks))}}},
		UpdateTransforms: serverTime(fieldCreated),
		CurrentDocument:  exists(false),
	}
}

// Mark implements [state.Store].
func (s *Store) Mark(ctx context.Context, job state.Job) error {
	_, err := s.mark(ctx, job)
	return err
}

// mark marks a job as deleted, and returns its document. One that is followed and isn't
// there yet is made, marked: writes of it that are under way fail then.
func (s *Store) mark(ctx context.Context, job state.Job) (*jobDoc, error) {
	for {
		var doc *jobDoc
		made := false
		_, err := s.transact(ctx, func(ctx context.Context, t *tx) (_ []*pb.Write, err error) {
			doc, err = t.getJob(ctx, job)
			made = false
			switch {
			case err != nil:
				return nil, err
			case doc == nil:
				tasks := s.expected(job)
				if tasks == 0 {
					return nil, state.NotFound(job)
				}
				made = true
				create := createJob(s.jobName(job), tasks)
				create.UpdateTransforms = append(create.UpdateTransforms, serverTime(fieldDeleted)...)
				return []*pb.Write{create}, nil
			case !doc.DeletedAt.IsZero():
				return nil, nil
			}
			return []*pb.Write{{
				Operation:        &pb.Write_Update{Update: &pb.Document{Name: doc.name}},
				UpdateMask:       &pb.DocumentMask{}, // what there is stays
				UpdateTransforms: serverTime(fieldDeleted),
				CurrentDocument:  exists(true),
			}}, nil
		})
		if err != nil {
			return nil, err
		}
		s.ended(job, state.ErrDeleted)
		if !made {
			return doc, nil
		}
	}
}

// deleteBatch is how many states are removed by one transaction. One may have
// 10 MiB and 40,000 entries of indexes.
const deleteBatch = 100

// Delete implements [state.Store]. The job is marked first and goes last: what a
// crash leaves can't be opened, and is deleted by deleting the job again.
func (s *Store) Delete(ctx context.Context, job state.Job) error {
	doc, err := s.mark(ctx, job)
	if err != nil {
		return err
	}
	for batch := deleteBatch; ; {
		done, err := s.deleteSome(ctx, doc, batch)
		switch {
		case done && err == nil:
			return nil
		case jobhost.CodeOf(err) == jobhost.CodeInvalid && batch > 1:
			batch /= 2 // they were too large together
		case err != nil:
			return err
		}
	}
}

// deleteSome removes up to limit states of a job that is marked, and the job after
// the last of them.
func (s *Store) deleteSome(ctx context.Context, doc *jobDoc, limit int) (done bool, err error) {
	_, err = s.transact(ctx, func(ctx context.Context, t *tx) ([]*pb.Write, error) {
		now, err := t.getJob(ctx, doc.Job)
		if err != nil {
			return nil, err
		}
		if now == nil || !now.born.Equal(doc.born) {
			done = true // by another process; what is there now is another job
			return nil, nil
		}
		states, err := s.query(ctx, t, doc.name, namesOnly(statesID, limit))
		if err != nil {
			return nil, err
		}
		var writes []*pb.Write
		for _, d := range states {
			writes = append(writes, remove(d.GetName()))
		}
		if done = len(states) < limit; done {
			writes = append(writes, remove(doc.name))
		}
		return writes, nil
	})
	return done, err
}
