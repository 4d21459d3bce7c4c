package queue

import (
	"maps"
	"strconv"
	"strings"
	"sync"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/breaker"
)

// noteBreaker is the prefix of the notes of breakers that are not closed; the
// key follows. The text is when the breaker is open until, in milliseconds.
const noteBreaker = "breaker/"

// breakers are the breakers of a queue by their keys.
type breakers struct {
	q *Queue

	mu    sync.Mutex // protects byKey and notes
	byKey map[string]*sharedBreaker
	notes map[string]string // by key: what was noted of those that are not in byKey
}

// remember takes over what was noted.
func (bs *breakers) remember(notes map[string]string) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	bs.notes = map[string]string{}
	for name, text := range notes {
		if key, of := strings.CutPrefix(name, noteBreaker); of && bs.byKey[key] == nil {
			bs.notes[key] = text
		}
	}
}

// join returns the breaker of a policy, which holds for it from now on, as one
// of the lane's. One that is new is as it was noted.
func (bs *breakers) join(policy jobhost.BreakerPolicy, l *lane) *sharedBreaker {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	b := bs.ofLocked(policy)
	b.SetPolicy(policy)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lanes[l] = struct{}{}
	return b
}

// joinJobs is join for a policy that jobs bring along; if a worker has the
// breaker its policy holds.
func (bs *breakers) joinJobs(policy jobhost.BreakerPolicy, l *lane) *sharedBreaker {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	b := bs.ofLocked(policy)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.lanes) == 0 {
		b.SetPolicy(policy)
	}
	b.jobLanes[l] = struct{}{}
	return b
}

// ofLocked returns the breaker of a policy's key.
func (bs *breakers) ofLocked(policy jobhost.BreakerPolicy) *sharedBreaker {
	if b := bs.byKey[policy.Key]; b != nil {
		return b
	}
	b := &sharedBreaker{
		Breaker: breaker.New(policy), key: policy.Key, lanes: map[*lane]struct{}{}, jobLanes: map[*lane]struct{}{},
	}
	if text, noted := bs.notes[policy.Key]; noted {
		until, _ := strconv.ParseInt(text, 10, 64) // what can't be read was open until 1970
		b.Breaker, b.saved = breaker.Restore(policy, record.Millis(until).Time()), text
		delete(bs.notes, policy.Key)
	}
	if bs.byKey == nil {
		bs.byKey = map[string]*sharedBreaker{}
	}
	bs.byKey[policy.Key] = b
	return b
}

// mostBreakers is how many are kept before unused ones are removed that have only
// counted some failures.
const mostBreakers = 256

// leave is for a lane without tasks, for now, of jobs that have a breaker. An unused
// breaker is forgotten, unless it has counted failures: there may be more of
// them when a task is tried again. Where an open one stands remains.
func (bs *breakers) leave(of *jobBreaker) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	b := of.sharedBreaker
	b.mu.Lock()
	delete(b.jobLanes, of.lane)
	b.mu.Unlock()
	switch text, state := b.note(); {
	case b.used():
	case state != jobhost.BreakerClosed:
		delete(bs.byKey, b.key)
		bs.notes[b.key] = text
	case !b.Counts():
		delete(bs.byKey, b.key)
	case len(bs.byKey) > mostBreakers:
		maps.DeleteFunc(bs.byKey, func(_ string, b *sharedBreaker) bool {
			_, state := b.note()
			return state == jobhost.BreakerClosed && !b.used()
		})
	}
}
