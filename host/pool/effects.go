package pool

import (
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/effect"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

var (
	_ hostcall.KV   = (*slot)(nil)
	_ hostcall.Jobs = (*slot)(nil)
)

// effects returns the effects of the running attempt. It is called only if
// there are any.
func (s *slot) effects(at *hostcall.Attempt) *effect.Attempt {
	if s.gathered == nil {
		s.gathered = effect.New(effect.Config{
			Queue: s.pool.cfg.Queue, Lease: s.lease, Quota: s.version.KVQuota, Deadline: at.Deadline, Hit: s.pool.cfg.Hit,
		})
	}
	return s.gathered
}

// takeEffects returns the collected effects; nil = none.
func (s *slot) takeEffects() *queue.Asked {
	if s.gathered == nil {
		return nil
	}
	asked := s.gathered.Take()
	s.gathered = nil
	return asked
}

// KVGet implements [hostcall.KV].
func (s *slot) KVGet(at *hostcall.Attempt, key []byte) ([]byte, int64, hostcall.Errno) {
	value, version, err := s.effects(at).Get(key)
	return value, version, hostcall.ErrnoOf(err)
}

// KVSet implements [hostcall.KV].
func (s *slot) KVSet(at *hostcall.Attempt, key, value []byte, ttl time.Duration) hostcall.Errno {
	return hostcall.ErrnoOf(s.effects(at).Set(key, value, ttl))
}

// KVDelete implements [hostcall.KV].
func (s *slot) KVDelete(at *hostcall.Attempt, key []byte) hostcall.Errno {
	return hostcall.ErrnoOf(s.effects(at).Delete(key))
}

// KVAdd implements [hostcall.KV].
func (s *slot) KVAdd(at *hostcall.Attempt, key []byte, delta int64) (int64, hostcall.Errno) {
	sum, err := s.effects(at).Add(key, delta)
	return sum, hostcall.ErrnoOf(err)
}

// KVCompareAndSet implements [hostcall.KV].
func (s *slot) KVCompareAndSet(at *hostcall.Attempt, key []byte, version int64, value []byte) hostcall.Errno {
	return hostcall.ErrnoOf(s.effects(at).CompareAndSet(key, version, value))
}

// SubmitJob implements [hostcall.Jobs].
func (s *slot) SubmitJob(at *hostcall.Attempt, spec *jobhost.Spec, when hostcall.SubmitTime) (string, error) {
	id, err := s.effects(at).Submit(*spec, when == hostcall.SubmitNow)
	if fault := faultOf(err); fault != nil {
		s.fault = fault
	}
	return id, err
}
