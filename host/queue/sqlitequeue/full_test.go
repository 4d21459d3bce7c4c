package sqlitequeue_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/queuetest"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/testing/crashvfs"
	"github.com/jobhost/jobhost/internal/testing/powerloss"
)

// patiently commits what is refused for want of room again, until it is taken.
func (m *machine) patiently(ops ...record.Op) error {
	for {
		_, err := commitAll(m.Store, ops...)
		if e, ok := errors.AsType[*jobhost.Error](err); !ok || e.Field != jobhost.FieldDisk {
			return err
		}
		<-time.After(10 * time.Millisecond)
	}
}

// noRoom lets a machine work on a disk that has no room at every n-th write or
// sync, for a while, and loses nothing: what was submitted is refused or taken,
// and what is patient is settled without having failed once.
func noRoom(t *testing.T, seed uint64, faults crashvfs.Faults) {
	t.Helper()
	m := newMachine(t)
	m.MustStart()
	m.Disk.Set(faults)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(g)))
			for i := range 6 {
				s := &step{
					id: fmt.Sprintf("full-%d-%d", g, i), tasks: 1, begun: 2,
					payload: make([]byte, rng.IntN(9_000)), expected: []byte(fmt.Sprint("result ", rng.Int64())),
				}
				m.mu.Lock()
				m.steps[s.id] = s
				m.mu.Unlock()
				if err := m.settlePatiently(s); err != nil {
					t.Errorf("step %s with %+v: %v", s.id, faults, err)
					return
				}
			}
		})
	}
	// A transaction of more writes than that never comes through.
	if max(faults.FullWrite, 10*faults.FullSync) < 100 {
		<-time.After(50 * time.Millisecond)
		m.Disk.Set(crashvfs.Faults{})
	}
	wg.Wait()
	if m.Err() != nil {
		t.Fatalf("a full disk stopped the store: %v", m.Err())
	}
	m.Disk.Set(crashvfs.Faults{})
	m.check()
	m.Crash(rand.New(rand.NewPCG(seed, 9)))
	m.MustStart()
	m.check()
	m.End()
}

// settlePatiently makes a step with one task.
func (m *machine) settlePatiently(s *step) error {
	main, other := newSpec(s.id, "w", 1), newSpec(s.id+"-b", "w", 1)
	main.Payload, main.Tasks = s.payload, s.tasks
	if err := m.patiently(&record.Submit{Job: main}, &record.Submit{Job: other}); err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	found, err := m.Job(m.T.Context(), s.id)
	if err != nil {
		return err
	}
	job := record.JobRecord{JobSpec: *main}
	job.Key = found.Key
	s.acked, s.key = 1, found.Key
	if _, err := commitAll(m.Store, &record.Settle{
		Key: s.key, Status: record.Succeeded, Attempt: 1, EndedAt: 2, Result: s.expected, Patient: true,
		Effects: queuetest.Tallying(&job, 0),
	}); err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	s.acked = 2
	return nil
}

// TestNoRoomAtEveryNthWrite has no room at every n-th write or sync, for every n in
// the chaos run and some otherwise.
func TestNoRoomAtEveryNthWrite(t *testing.T) {
	t.Parallel()
	for _, n := range numbers() {
		for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
			t.Run(fmt.Sprintf("%d %v", n, errno), func(t *testing.T) {
				t.Parallel()
				noRoom(t, uint64(n), crashvfs.Faults{FullWrite: n, Full: errno})
				noRoom(t, uint64(n)+1, crashvfs.Faults{FullSync: n, Full: errno})
			})
		}
	}
}

// numbers returns every how many writes there is no room: further and further
// apart, up to the writes of a machine's life; in the normal tests a few of them.
func numbers() (list []int) {
	if powerloss.Rounds(0, 1) == 0 {
		return []int{1, 29, 147}
	}
	for n := 1; n < 2500; n += 1 + n/4 {
		list = append(list, n)
	}
	return list
}
