package queue_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// troubledStore is a store whose reads and commits can be held up and made to fail.
type troubledStore struct {
	record.Store

	mu sync.Mutex // protects what follows
	// Reads wait for holdReads, after they have read: what they bring is old.
	// Nil = they don't.
	holdReads chan struct{}
	// Callbacks of commits wait for holdCallbacks, the changes are made.
	holdCallbacks chan struct{}
	failReads     int // how many reads fail; -1 = all
	failCommits   bool
	damaged       string // the job of which the payload is

	failed atomic.Int64 // reads that failed
}

var errTrouble = &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "the disk is in trouble"}

func (s *troubledStore) Load(ctx context.Context, keys []record.Key) ([]record.Body, error) {
	bodies, err := s.Store.Load(ctx, keys)
	s.mu.Lock()
	hold := s.holdReads
	s.mu.Unlock()
	if hold != nil {
		<-hold
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failReads != 0 {
		s.failReads = max(s.failReads-1, -1)
		s.failed.Add(1)
		return nil, errors.Join(err, errTrouble)
	}
	for i := range bodies {
		if bodies[i].Job.ID == s.damaged {
			bodies[i].Damage = errDamage
		}
	}
	return bodies, err
}

var errDamage = &jobhost.Error{Code: jobhost.CodeDamaged, Message: "the payload of it"}

func (s *troubledStore) Job(ctx context.Context, id string) (record.JobRecord, error) {
	job, err := s.Store.Job(ctx, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if id == s.damaged {
		job.Damage = errDamage
	}
	return job, err
}

func (s *troubledStore) Commit(ops []record.Op, done func([]record.OpResult, error)) {
	s.mu.Lock()
	fails := s.failCommits
	s.mu.Unlock()
	if fails {
		s.Store.Commit(nil, func([]record.OpResult, error) { done(nil, errTrouble) })
		return
	}
	s.Store.Commit(ops, func(results []record.OpResult, err error) {
		s.mu.Lock()
		hold := s.holdCallbacks
		s.mu.Unlock()
		if hold != nil {
			<-hold
		}
		done(results, err)
	})
}

// trouble changes what the store does from now on.
func (s *troubledStore) trouble(change func(*troubledStore)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}
