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

func (s *services) KVGet(_ *hostcall.Attempt, key []byte) ([]byte, hostcall.Errno) {
	if value, ok := s.kv[string(key)]; ok {
		return []byte(value), hostcall.OK
	}
	if e, ok := getErrnos[string(key)]; ok {
		return nil, e
	}
	return nil, hostcall.ErrNotFound
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
