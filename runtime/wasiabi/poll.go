package wasiabi

import (
	"encoding/binary"
	"io"
	"time"
)

const (
	subscriptionSize = 48
	eventSize        = 32
	// maxSubscriptions bounds the subscriptions of one call, far above the
	// possible number of descriptors.
	maxSubscriptions = 4096
)

// Kinds of subscriptions and events.
const (
	clockEvent = iota
	readEvent
	writeEvent
)

// subscription is one thing that a guest waits for.
type subscription struct {
	userdata uint64
	kind     uint8
	fd       uint32
	clock    uint32
	timeout  uint64
	abs      bool
}

func readSubscription(b []byte) subscription {
	return subscription{
		userdata: binary.LittleEndian.Uint64(b),
		kind:     b[8],
		fd:       binary.LittleEndian.Uint32(b[16:]), // the same position as the clock's id
		clock:    binary.LittleEndian.Uint32(b[16:]),
		timeout:  binary.LittleEndian.Uint64(b[24:]),
		abs:      b[40]&1 != 0,
	}
}

// event is the result of a subscription.
type event struct {
	userdata uint64
	errno    Errno
	kind     uint8
	bytes    uint64 // to be read
	hangup   bool   // nothing follows them
}

func (ev event) put(b []byte) {
	clear(b)
	binary.LittleEndian.PutUint64(b, ev.userdata)
	binary.LittleEndian.PutUint16(b[8:], uint16(ev.errno))
	b[10] = ev.kind
	binary.LittleEndian.PutUint64(b[16:], ev.bytes)
	if ev.hangup {
		b[24] = 1
	}
}

// poll_oneoff(in, out, nsubscriptions, nevents) waits until one of the
// subscribed events occurs. Files and streams are always ready, so it only
// waits for clocks. It ends early, with no event, when the guest is stopped.
func pollOneoff(s *System, m memory, a args) Errno {
	n := a.u32(2)
	if n == 0 || n > maxSubscriptions {
		return EINVAL
	}
	in, e := m.view(a.u32(0), uint64(n)*subscriptionSize)
	if e != OK {
		return e
	}
	out, e := m.view(a.u32(1), uint64(n)*eventSize)
	if e != OK {
		return e
	}
	if _, e := m.view(a.u32(3), 4); e != OK {
		return e
	}
	now := present()
	wait, clocks := s.nextClock(in, now)
	if clocks && !s.sleep(wait) {
		return m.put32(a.u32(3), 0)
	}
	// If the events overlap the subscriptions, the guest only harms itself.
	count := uint32(0)
	for ; len(in) > 0; in = in[subscriptionSize:] {
		if ev, ok := s.poll(readSubscription(in), now, wait); ok {
			ev.put(out[count*eventSize:][:eventSize])
			count++
		}
	}
	return m.put32(a.u32(3), count)
}

// nextClock returns how long it takes until the first of the subscriptions is
// ready, and whether all are clocks.
func (s *System) nextClock(in []byte, now moment) (wait time.Duration, clocks bool) {
	wait = -1
	for ; len(in) > 0; in = in[subscriptionSize:] {
		sub := readSubscription(in)
		left, ok := s.until(sub.clock, sub.timeout, sub.abs, now)
		if sub.kind != clockEvent || !ok {
			return 0, false
		}
		if wait < 0 || left < wait {
			wait = left
		}
	}
	return wait, true
}

// sleep reports whether it slept to the end.
func (s *System) sleep(d time.Duration) bool {
	if d <= 0 {
		return !s.stopped()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.stop:
		return false
	}
}

// poll returns the event of a subscription, if there is one, after a sleep that
// began at a moment.
func (s *System) poll(sub subscription, began moment, slept time.Duration) (event, bool) {
	ev := event{userdata: sub.userdata, kind: sub.kind}
	switch sub.kind {
	case clockEvent:
		left, ok := s.until(sub.clock, sub.timeout, sub.abs, began)
		if !ok {
			ev.errno = EINVAL
		}
		return ev, left <= slept
	case readEvent, writeEvent:
		d, e := s.get(sub.fd, pollRight)
		if e != OK {
			ev.errno = e
			return ev, true
		}
		if sub.kind == readEvent {
			ev.bytes, ev.hangup = s.readable(d)
		}
		return ev, true
	}
	ev.errno = EINVAL
	return ev, true
}

// readable returns how many bytes can be read, and whether that is all there is.
func (s *System) readable(d *descriptor) (uint64, bool) {
	switch d.kind {
	case input:
		return uint64(s.unread()), true
	case regular:
		info, err := d.file.Stat()
		if err != nil {
			return 0, false
		}
		offset, err := d.file.Seek(0, io.SeekCurrent)
		if err != nil {
			return 0, false
		}
		return uint64(max(info.Size()-offset, 0)), false
	}
	return 0, false
}
