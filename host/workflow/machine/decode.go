package machine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/jobhost/jobhost"
)

// ErrRecord is for a record that can't be one, or is not of this graph.
var ErrRecord = errors.New("record of a workflow")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRecord, fmt.Sprintf(format, args...))
}

// decode reads a record of a workflow of this machine.
func (c *Machine) decode(data []byte) (*record, error) {
	r, err := decode(data)
	if err != nil {
		return nil, err
	}
	if r.digest != c.graph.Digest || len(r.status) != len(c.graph.Steps) {
		return nil, malformed("it is of another definition")
	}
	for _, d := range r.details {
		node := &c.graph.Steps[d.step]
		if d.via == step && node.Fallback == None || d.via == worker && !node.FallbackWorker ||
			d.via == signal && node.Kind != Signal || d.empty && !node.HasFanOut {
			return nil, malformed("step %d can't have ended this way", d.step)
		}
	}
	for _, s := range r.signals {
		if waiting := c.signals[c.graph.Steps[s.step].Signal]; len(waiting) == 0 || waiting[0] != int(s.step) {
			return nil, malformed("step %d waits for no signal", s.step)
		}
	}
	return r, nil
}

// decode reads a record. There is one form of each, and nothing else is taken.
func decode(data []byte) (*record, error) {
	if len(data) == 0 || data[0] != version {
		return nil, malformed("it is empty, or of another version than %d", version)
	}
	d := decoder{rest: data[1:]}
	r := &record{digest: d.fixed()}
	r.phase = phase(d.upTo(uint64(phases) - 1))
	r.started = int64(d.upTo(math.MaxInt64))
	r.begun = d.uint32()
	r.slots = d.uint32()
	d.status(r)
	d.details(r)
	d.signals(r)
	switch {
	case d.bad, d.replaced != 0:
		return nil, malformed("it is damaged")
	case len(d.rest) > 0:
		return nil, malformed("%d bytes are left over", len(d.rest))
	case (r.phase == underway) != (r.open > 0):
		return nil, malformed("a workflow in phase %d has %d open steps", r.phase, r.open)
	}
	return r, nil
}

// decoder takes numbers off bytes. After the first that is bad all are 0.
type decoder struct {
	rest []byte
	bad  bool
	// replaced counts the steps whose fallback has its turn, and of which no detail says so yet.
	replaced int
}

func (d *decoder) fail() {
	d.bad, d.rest = true, nil
}

func (d *decoder) upTo(most uint64) uint64 {
	if len(d.rest) > 0 && d.rest[0] < 0x80 && uint64(d.rest[0]) <= most {
		n := uint64(d.rest[0])
		d.rest = d.rest[1:]
		return n
	}
	n, size := binary.Uvarint(d.rest)
	if size <= 0 || n > most || size > 1 && d.rest[size-1] == 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

func (d *decoder) uint32() uint32 { return uint32(d.upTo(math.MaxUint32)) }

func (d *decoder) fixed() uint64 {
	if len(d.rest) < 8 {
		d.fail()
		return 0
	}
	n := binary.LittleEndian.Uint64(d.rest)
	d.rest = d.rest[8:]
	return n
}

// count reads how many things follow, each of which takes at least size bytes.
func (d *decoder) count(most, size int) int {
	n := int(d.upTo(uint64(most)))
	if n*size > len(d.rest) {
		d.fail()
		return 0
	}
	return n
}

func (d *decoder) status(r *record) {
	n := int(d.upTo(jobhost.MaxSteps))
	if n == 0 || len(d.rest) == 0 {
		d.fail()
		return
	}
	r.status = make([]status, n)
	last := statuses
	for at := 0; at < n; {
		run := d.upTo(jobhost.MaxSteps<<4 | 0xf)
		s, length := status(run&0xf), int(run>>4)
		if s >= statuses || s == last || s == stopped && r.phase == underway || length == 0 || length > n-at {
			d.fail()
			return
		}
		if !s.ended() {
			r.open += length
		}
		if s == falling || s == fallback {
			d.replaced += length
		}
		if s != pending {
			fill(r.status[at:at+length], s)
		}
		at, last = at+length, s
	}
}

// fill makes all of a list the same, a growing part of it at a time.
func fill(list []status, s status) {
	list[0] = s
	for n := 1; n < len(list); n *= 2 {
		copy(list[n:], list[:n])
	}
}

func (d *decoder) details(r *record) {
	n := d.count(len(r.status), 2)
	if n == 0 {
		return
	}
	r.details = make([]detail, n, n+4)
	last := -1
	for i := range r.details {
		last += 1 + int(d.upTo(jobhost.MaxSteps))
		if last >= len(r.status) {
			d.fail()
			return
		}
		one := &r.details[i]
		d.detail(one)
		one.step = int32(last)
		if s := r.status[last]; s == falling && one.via == step || s == fallback && one.via == worker {
			d.replaced--
		}
		if d.bad || *one == usual(one.step, r.status[last]) || one.slot > 0 && one.slot >= r.slots {
			d.fail()
			return
		}
	}
}

func (d *decoder) detail(one *detail) {
	flags := byte(d.upTo(detailBits))
	one.via = via(flags & 3)
	one.untimed, one.empty = flags&isUntimed != 0, flags&isEmpty != 0
	for _, f := range one.numbers() {
		*f.n = f.usual
		if flags&f.flag == 0 {
			continue
		}
		if *f.n = d.uint32(); *f.n == f.usual {
			d.fail()
		}
	}
}

func (d *decoder) signals(r *record) {
	if n := d.count(MaxSignals, 2); n > 0 {
		r.signals = make([]kept, n, n+1)
		for i := range r.signals {
			r.signals[i].step = int32(d.upTo(uint64(len(r.status)) - 1))
			r.signals[i].slot = d.uint32()
			if r.signals[i].slot >= r.slots {
				d.fail()
			}
		}
	}
	if n := d.count(MaxSignals, 8); n > 0 {
		r.seen = make([]uint64, n, n+1)
		for i := range r.seen {
			r.seen[i] = d.fixed()
		}
	}
}
