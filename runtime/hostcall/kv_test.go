package hostcall_test

import (
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// TestKVArguments: what can't be a key or a value never gets to the host.
func TestKVArguments(t *testing.T) {
	t.Parallel()
	at := &hostcall.Attempt{Services: able{}}
	good := []byte("key")
	for _, bad := range []string{"", "a\x00b", "\xff", "line\nline", strings.Repeat("k", jobhost.MaxKeyBytes+1)} {
		key := []byte(bad)
		_, get := at.KVGet(key)
		_, version := at.KVVersion(key)
		_, add := at.KVAdd(key, 1)
		for call, e := range map[string]hostcall.Errno{
			"get": get, "version": version, "add": add, "set": at.KVSet(key, nil, 0),
			"delete": at.KVDelete(key), "cas": at.KVCompareAndSet(key, 7, nil),
		} {
			if e != hostcall.ErrInvalid {
				t.Errorf("%s with key %q: errno %d", call, bad, e)
			}
		}
	}
	large := make([]byte, jobhost.MaxValueBytes+1)
	for _, tt := range []struct {
		name      string
		got, want hostcall.Errno
	}{
		{"the largest value", at.KVSet(good, large[1:], 0), hostcall.OK},
		{"a larger one", at.KVSet(good, large, 0), hostcall.ErrLimit},
		{"a larger one by cas", at.KVCompareAndSet(good, 7, large), hostcall.ErrLimit},
		{"a long time", at.KVSet(good, nil, 315_360_000_000), hostcall.OK},
		{"a longer one", at.KVSet(good, nil, 315_360_000_001), hostcall.ErrInvalid},
		{"a time before now", at.KVSet(good, nil, -1), hostcall.ErrInvalid},
		{"the version", at.KVCompareAndSet(good, 7, nil), hostcall.OK},
		{"another version", at.KVCompareAndSet(good, 6, nil), hostcall.ErrConflict},
		{"no version", at.KVCompareAndSet(good, -1, nil), hostcall.ErrInvalid},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: errno %d, want %d", tt.name, tt.got, tt.want)
		}
	}
	if version, e := at.KVVersion(good); version != 7 || e != hostcall.OK {
		t.Errorf("version %d, errno %d", version, e)
	}
	if sum, e := at.KVAdd(good, 41); sum != 42 || e != hostcall.OK {
		t.Errorf("sum %d, errno %d", sum, e)
	}
}

// TestKVHugeKey: a guest may call all of its memory a key. It is refused without a copy.
func TestKVHugeKey(t *testing.T) {
	at := &hostcall.Attempt{Services: able{}}
	key := make([]byte, 64<<20)
	if n := testing.AllocsPerRun(3, func() {
		if _, e := at.KVGet(key); e != hostcall.ErrInvalid {
			t.Errorf("errno %d", e)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
