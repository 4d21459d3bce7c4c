package op

import (
	"sync"
	"unsafe"
)

// session is one performing of an op. Every goroutine that can make one of its
// arms ready holds a pointer to it; the first to commit an arm wins.
//
// The protocol between the performing goroutine and the others: commit decides,
// under mu, and the goroutine that committed then writes the result into the
// arm's slot and calls wakeUp. The performing goroutine reads neither winner nor
// result before it has received the wake-up.
//
// Locks are taken in the order channel (or other owner of a wait list), then
// session; of two sessions the one at the lower address first. No lock is held
// while user functions run.
type session struct {
	mu     sync.Mutex // protects state and winner until the wake-up
	state  state
	winner int           // the arm that committed while parked, or -1
	wake   chan struct{} // holds the only wake-up there can be

	// The rest belongs to the performing goroutine.
	arm        int     // the arm being probed, registered or resumed
	arms       int     // arms counted by the builders
	aborts     []abort // in the order in which they must fire
	won        bool    // an arm has committed; it is arm
	lastResort bool    // the probe found nothing: fallbacks are ready now
	fallbacks  []int   // arms that are ready when nothing else is
	slots      []slot  // what each arm registered; nil = the session hasn't parked
	withdrawn  int     // slots handled by withdraw
	few        [2]slot // saves an allocation for small choices
}

type state uint8

const (
	waiting   state = iota // any arm may commit
	committed              // one has
	cancelled              // none will
)

// slot is an arm's registration.
type slot interface {
	// withdraw removes the registration. It must do nothing if that is already
	// gone, for instance because a channel found it stale.
	withdraw()
}

// abort is an action for when none of the arms in [from, to) has won.
type abort struct {
	from, to int
	do       func()
}

func newSession() *session { return &session{winner: -1} }

// at sets the arm that is handled next. A nil session doesn't record it.
func (s *session) at(arm int) {
	if s != nil {
		s.arm = arm
	}
}

// park prepares for n arms to register.
func (s *session) park(n int) {
	s.wake = make(chan struct{}, 1)
	if n <= len(s.few) {
		s.slots = s.few[:n]
	} else {
		s.slots = make([]slot, n)
	}
}

// parkedAs returns the slot of the arm that won while s was parked.
func parkedAs[S slot](s *session) (w S, ok bool) {
	if s == nil || s.slots == nil {
		return w, false
	}
	return s.slots[s.arm].(S), true
}

// commit makes arm the winner and reports true, unless s is already decided. The
// caller must then write the result and call wakeUp.
func (s *session) commit(arm int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commitLocked(arm)
}

func (s *session) commitLocked(arm int) bool {
	if s.state != waiting {
		return false
	}
	s.state, s.winner = committed, arm
	return true
}

// wakeUp publishes the result of a commit to the performing goroutine.
func (s *session) wakeUp() { s.wake <- struct{}{} }

// meeting is the outcome of commitBoth.
type meeting uint8

const (
	met      meeting = iota // both have committed
	selfGone                // self was already decided; peer is unchanged
	peerGone                // peer was already decided; self is unchanged
)

// commitBoth commits one arm of each of two parked sessions, or none. Since
// every goroutine that needs two sessions locks them in the order of their
// addresses, two choices that meet each other on two channels at once can't
// deadlock. Sessions here are on the heap, where Go objects don't move.
func commitBoth(self *session, selfArm int, peer *session, peerArm int) meeting {
	first, second := self, peer
	if uintptr(unsafe.Pointer(second)) < uintptr(unsafe.Pointer(first)) {
		first, second = second, first
	}
	first.mu.Lock()
	defer first.mu.Unlock()
	second.mu.Lock()
	defer second.mu.Unlock()
	if self.state != waiting {
		return selfGone
	}
	if !peer.commitLocked(peerArm) {
		return peerGone
	}
	self.commitLocked(selfArm)
	return met
}

// decided reports whether the outcome is final.
func (s *session) decided() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state != waiting
}

// cancel makes it final that no arm commits and reports true, unless one has.
func (s *session) cancel() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == committed {
		return false
	}
	s.state = cancelled
	return true
}

// wait sleeps until an arm has committed and reports true, or until done is
// closed and none has committed.
func (s *session) wait(done <-chan struct{}) bool {
	if done == nil {
		<-s.wake // cheaper than a select
		return true
	}
	select {
	case <-s.wake:
		return true
	case <-done:
	}
	if s.cancel() {
		return false
	}
	<-s.wake // the result is being written
	return true
}

// withdraw removes the registrations of all arms but the winner's. If one of
// them panics, the others are still removed.
func (s *session) withdraw() {
	defer func() {
		if s.withdrawn < len(s.slots) {
			s.withdraw()
		}
	}()
	for s.withdrawn < len(s.slots) {
		arm := s.withdrawn
		s.withdrawn++
		if slot := s.slots[arm]; slot != nil && arm != s.winner {
			slot.withdraw()
		}
	}
}

// leave makes sure that nothing of s stays registered. It has something to do
// only after a panic.
func (s *session) leave() {
	if s.withdrawn < len(s.slots) {
		s.cancel()
		s.withdraw()
	}
}

// chosen is called by the arm that commits, before its wraps: now the abort
// conditions of arms that have lost fire. A nil session has none.
func (s *session) chosen() {
	if s != nil {
		s.won = true
		s.abort()
	}
}

// onAbort adds an abort condition for the arms from the given one to the last
// counted one. Builders call it after building what it covers, so inner
// conditions come before outer ones.
func (s *session) onAbort(from int, do func()) {
	s.aborts = append(s.aborts, abort{from: from, to: s.arms, do: do})
}

// abort fires the remaining conditions that don't cover the winner. If one of
// them panics, the others still fire.
func (s *session) abort() {
	if len(s.aborts) == 0 {
		return
	}
	defer s.abort()
	for len(s.aborts) > 0 {
		a := s.aborts[0]
		s.aborts = s.aborts[1:]
		if !s.won || s.arm < a.from || s.arm >= a.to {
			a.do()
		}
	}
}
