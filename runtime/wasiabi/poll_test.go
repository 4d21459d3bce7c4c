package wasiabi_test

import (
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost/runtime/wasiabi"
)

func clockSubscription(userdata uint64, clock uint32, timeout uint64, abs bool) []byte {
	b := make([]byte, 48)
	binary.LittleEndian.PutUint64(b, userdata)
	binary.LittleEndian.PutUint32(b[16:], clock)
	binary.LittleEndian.PutUint64(b[24:], timeout)
	if abs {
		b[40] = 1
	}
	return b
}

func fdSubscription(kind byte, fd uint32) []byte {
	b := make([]byte, 48)
	b[8] = kind
	binary.LittleEndian.PutUint32(b[16:], fd)
	return b
}

// event is an event in the guest's memory.
func (b *box) event(at int) (userdata uint64, errno uint16, kind byte) {
	ev := b.memory.b[at:]
	return binary.LittleEndian.Uint64(ev), binary.LittleEndian.Uint16(ev[8:]), ev[10]
}

func (b *box) now(clock uint64) uint64 {
	b.must("clock_time_get", clock, 0, result)
	return b.u64()
}

func TestClocks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		precise bool
		step    uint64
	}{{"coarse", false, 1e6}, {"precise", true, 1}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, wasiabi.Config{PreciseClock: tt.precise})
			for clock := range uint64(4) {
				b.must("clock_res_get", clock, result)
				if b.u64() != tt.step {
					t.Errorf("clock %d has steps of %d ns", clock, b.u64())
				}
				before := b.now(clock)
				after := b.now(clock)
				if before%tt.step != 0 || after < before || after-before > 1e9 {
					t.Errorf("clock %d: %d, then %d", clock, before, after)
				}
			}
			if d := time.Since(time.Unix(0, int64(b.now(0)))); d < 0 || d > time.Minute {
				t.Errorf("the time is %v ago", d)
			}
			if up := b.now(1); up < 1e9 || up > 25*3600*1e9 {
				t.Errorf("the monotonic clock shows %d", up)
			}
			b.want(wasiabi.EINVAL, "clock_time_get", 4, 0, result)
			b.want(wasiabi.EINVAL, "clock_res_get", 1<<32-1, result)
		})
	}
}

// TestSleep: by the guest's own clock no sleep is too short, and none is more
// than two steps too long.
func TestSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t, wasiabi.Config{})
		for _, ns := range []uint64{0, 1, 999_999, 1_000_000, 5_300_000, 3600e9} {
			for _, abs := range []bool{false, true} {
				time.Sleep(300 * time.Microsecond)
				if slept := b.sleep(0, ns, abs); slept < ns || slept > ns+2e6 {
					t.Errorf("absolute %t: slept %d ns instead of %d", abs, slept, ns)
				}
			}
		}
	})
	// The monotonic clock is that of the process, which has no part in a bubble.
	b := newBox(t, wasiabi.Config{})
	for _, ns := range []uint64{0, 1, 1_700_000} {
		for _, abs := range []bool{false, true} {
			if slept := b.sleep(1, ns, abs); slept < ns {
				t.Errorf("monotonic, absolute %t: slept %d ns instead of %d", abs, slept, ns)
			}
		}
	}
}

// sleep returns how long a guest slept by its clock.
func (b *box) sleep(clock uint32, timeout uint64, abs bool) uint64 {
	b.t.Helper()
	before := b.now(uint64(clock))
	if abs {
		timeout += before
	}
	const out = 2048
	b.must("poll_oneoff", b.put(clockSubscription(7, clock, timeout, abs)), out, 1, result)
	if b.u32() != 1 {
		b.t.Fatalf("%d events", b.u32())
	}
	if user, errno, kind := b.event(out); user != 7 || errno != 0 || kind != 0 {
		b.t.Errorf("event %d %d %d", user, errno, kind)
	}
	return b.now(uint64(clock)) - before
}

func TestPollMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t, wasiabi.Config{})
		const out = 8192
		poll := func(subs ...[]byte) (users []uint64, errnos []uint16) {
			var in []byte
			for i, s := range subs {
				binary.LittleEndian.PutUint64(s, uint64(i))
				in = append(in, s...)
			}
			b.must("poll_oneoff", b.put(in), out, uint64(len(subs)), result)
			n := int(b.u32())
			for i := range n {
				user, errno, _ := b.event(out + i*32)
				users, errnos = append(users, user), append(errnos, errno)
			}
			return users, errnos
		}
		start := time.Now()
		hour := clockSubscription(0, 0, 3600e9, false)
		if users, _ := poll(hour, clockSubscription(0, 0, 5e6, false), clockSubscription(0, 0, 4_999_999, false)); len(users) == 0 || users[0] == 0 {
			t.Errorf("events of %v", users)
		}
		if d := time.Since(start); d > 6*time.Millisecond {
			t.Errorf("slept %v", d)
		}
		start = time.Now()
		users, errnos := poll(hour, fdSubscription(1, 0), fdSubscription(2, 1), fdSubscription(1, 99), fdSubscription(3, 0), clockSubscription(0, 9, 1, false))
		if len(users) != 5 || users[0] != 1 || errnos[2] != 8 || errnos[3] != 28 || errnos[4] != 28 {
			t.Errorf("events of %v, errnos %v", users, errnos)
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("slept %v", d)
		}
		b.want(wasiabi.EINVAL, "poll_oneoff", 0, 0, 0, result)
		b.want(wasiabi.EINVAL, "poll_oneoff", 0, 0, 4097, result)
		b.want(wasiabi.EINVAL, "poll_oneoff", 0, 0, 1<<32-1, result)
		b.want(wasiabi.EFAULT, "poll_oneoff", 65500, 0, 1, result)
		b.want(wasiabi.EFAULT, "poll_oneoff", 0, 65520, 1, result)
	})
}

// TestPollFile: a file is always ready, and reports how much can be read.
func TestPollFile(t *testing.T) {
	t.Parallel()
	b, dir := mounted(t, wasiabi.Config{})
	tree(t, dir, map[string]string{"f": "some text"})
	fd := b.mustOpen("f", opening{})
	b.read(fd, 5)
	const out = 2048
	for kind, want := range map[byte]byte{1: 4, 2: 0} {
		b.must("poll_oneoff", b.put(fdSubscription(kind, fd)), out, 1, result)
		if _, errno, got := b.event(out); b.u32() != 1 || errno != 0 || got != kind || b.memory.b[out+16] != want {
			t.Errorf("%d events, errno %d, kind %d, %d bytes", b.u32(), errno, got, b.memory.b[out+16])
		}
	}
}

// TestStop: a sleep ends with the guest, without an event, however long it was meant to be.
func TestStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		b := newBox(t, wasiabi.Config{Stop: stop})
		start := time.Now()
		time.AfterFunc(time.Second, func() { close(stop) })
		sub := b.put(clockSubscription(7, 0, 1<<64-1, false))
		for range 2 { // the second time it is already stopped
			b.must("poll_oneoff", sub, 2048, 1, result)
			if d := time.Since(start); d != time.Second || b.u32() != 0 {
				t.Errorf("slept %v, %d events", d, b.u32())
			}
		}
		b.at.Cancel()
		b.want(wasiabi.EINTR, "random_get", 0, pageSize)
	})
}

func TestRandom(t *testing.T) {
	t.Parallel()
	b := newBox(t, wasiabi.Config{})
	b.must("random_get", heap, 32)
	first := string(b.memory.b[heap:][:32])
	b.must("random_get", heap, 32)
	if second := string(b.memory.b[heap:][:32]); first == second || b.memory.b[heap+32] != 0 {
		t.Errorf("%x, then %x", first, second)
	}
	b.must("random_get", 0, pageSize)
	b.must("random_get", 1<<32-1, 0)
	b.want(wasiabi.EFAULT, "random_get", 1, pageSize)
	b.want(wasiabi.EFAULT, "random_get", 1<<32-1, 1<<32-1)
}
