package extismabi_test

import (
	"time"

	"github.com/jobhost/jobhost/runtime/hostcall"
)

var _ hostcall.KV = (*services)(nil)

// getErrnos and setErrnos are answers to the names of tests.
var (
	getErrnos = map[string]hostcall.Errno{"bad": hostcall.ErrInvalid, "broken": hostcall.ErrIO}
	setErrnos = map[string]hostcall.Errno{"set full": hostcall.ErrLimit, "set denied": hostcall.ErrDenied}
)

func (s *services) KVGet(_ *hostcall.Attempt, key []byte) ([]byte, int64, hostcall.Errno) {
	if value, ok := s.kv[string(key)]; ok {
		return []byte(value), 1, hostcall.OK
	}
	if e, ok := getErrnos[string(key)]; ok {
		return nil, 0, e
	}
	return nil, 0, hostcall.ErrNotFound
}

func (s *services) KVSet(_ *hostcall.Attempt, key, value []byte, _ time.Duration) hostcall.Errno {
	if e, ok := setErrnos[string(key)]; ok {
		return e
	}
	s.kv[string(key)] = string(value)
	return hostcall.OK
}

func (s *services) KVDelete(_ *hostcall.Attempt, key []byte) hostcall.Errno {
	delete(s.kv, string(key))
	return hostcall.OK
}

// Extism has no calls for what follows.

func (s *services) KVAdd(*hostcall.Attempt, []byte, int64) (int64, hostcall.Errno) {
	return 0, hostcall.ErrDenied
}

func (s *services) KVCompareAndSet(*hostcall.Attempt, []byte, int64, []byte) hostcall.Errno {
	return hostcall.ErrDenied
}
