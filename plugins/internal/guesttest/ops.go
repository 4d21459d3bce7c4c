package guesttest

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// Reply is what comes of a request.
type Reply struct {
	Text  string        // as the guest reads it
	After time.Duration // by the guest's clock
	Never bool
}

// Ops are what a guest did with requests, timers and the ends of jobs.
type Ops struct {
	Requests []string // that were sent, as texts
	Deferred []string // "ENTRY ARGS TEXT"
	Dropped  []string // the first lines of requests whose reply was not read
	// MostOpen is how many requests were under way at the same time.
	MostOpen int
	// Waits counts calls of wait and read that had to wait.
	Waits int
	// Elapsed is the time that the guest has waited. It passes at once, and by the
	// guest's own clocks too.
	Elapsed time.Duration

	handles map[int32]*pending
	last    int32
	inbox   int32 // the handle of recv; 0 = not asked for
}

// pending is what a handle stands for.
type pending struct {
	at   time.Duration // when it is ready, as Elapsed will be
	text string
	open string // the first line of a request that is under way

	stream *stream // of many messages; nil = of one
}

// when is when it is ready, as Elapsed will be.
func (p *pending) when() time.Duration {
	if p.stream != nil {
		return p.stream.when()
	}
	return p.at
}

const (
	never = math.MaxInt64
	// firstHandle is far from the numbers of children.
	firstHandle = 1000
)

// opens makes a handle.
func (o *Ops) opens(p *pending) int32 {
	o.last++
	o.set(firstHandle+o.last, p)
	open := 0
	for _, p := range o.handles {
		if p.open != "" {
			open++
		}
	}
	o.MostOpen = max(o.MostOpen, open)
	return firstHandle + o.last
}

func (o *Ops) set(number int32, p *pending) {
	if o.handles == nil {
		o.handles = map[int32]*pending{}
	}
	o.handles[number] = p
}

// child makes the number of a child a handle.
func (at *Attempt) child(number int32) {
	if number < 1 || int(number) > len(at.Jobs) || at.Jobs[number-1][0] != '1' || at.Ops.handles[number] != nil {
		return
	}
	p := &pending{at: never}
	if text, ok := at.Ends[int(number)]; ok {
		p.at, p.text = at.Ops.Elapsed, text
	}
	at.Ops.set(number, p)
}

// wait lets time pass until one is ready, and returns its index.
func (at *Attempt) wait(numbers []int32, timeout int64) int32 {
	o, first := &at.Ops, (*pending)(nil)
	index := int32(-5)
	for i, number := range numbers {
		at.child(number)
		p := o.handles[number]
		if p == nil {
			return -5
		}
		if first == nil || p.when() < first.when() {
			first, index = p, int32(i)
		}
	}
	if first == nil || at.Stopped {
		return min(index, -3)
	}
	if first.when() <= o.Elapsed {
		return index
	}
	o.Waits++
	until := time.Duration(never)
	if timeout >= 0 {
		until = o.Elapsed + time.Duration(timeout)*time.Millisecond
	}
	if first.when() == never && until == never {
		return -3
	}
	o.Elapsed = min(first.when(), until)
	if first.when() > o.Elapsed {
		return -1
	}
	return index
}

// drop ends a handle.
func (o *Ops) drop(number int32) int32 {
	p := o.handles[number]
	if p == nil {
		return -5
	}
	if p.open != "" {
		o.Dropped = append(o.Dropped, p.open)
	}
	delete(o.handles, number)
	return 0
}

// read waits and copies what is next.
func (at *Attempt) read(m api.Memory, number int32, buf, room uint64) int32 {
	if i := at.wait([]int32{number}, -1); i < 0 {
		return i
	}
	p := at.Ops.handles[number]
	if p.stream != nil {
		return p.stream.read(m, buf, room)
	}
	p.open = ""
	if uint32(room) == 0 {
		return int32(len(p.text))
	}
	// Less than there is room for, as a host may do it.
	n := min(len(p.text), int(uint32(room)), 1<<15)
	fill(m, buf, uint64(n), p.text[:n])
	p.text = p.text[n:]
	return int32(n)
}

// defineOps defines the calls for what takes time.
func defineOps(define func(name string, params, results []api.ValueType, call hostCall)) {
	type types = []api.ValueType
	define("http", types{i32, i32}, types{i32}, func(at *Attempt, m api.Memory, s []uint64) {
		request := text(m, s[0], s[1])
		if at.HTTP == nil {
			s[0] = api.EncodeI32(-2)
			return
		}
		at.Ops.Requests = append(at.Ops.Requests, request)
		reply := at.HTTP(request)
		line, _, _ := strings.Cut(request, "\n")
		p := &pending{at: at.Ops.Elapsed + reply.After, text: reply.Text, open: line}
		if reply.Never {
			p.at = never
		}
		s[0] = api.EncodeI32(at.Ops.opens(p))
	})
	define("timer", types{i64}, types{i32}, func(at *Attempt, _ api.Memory, s []uint64) {
		s[0] = api.EncodeI32(at.Ops.opens(&pending{at: at.Ops.Elapsed + time.Duration(s[0])*time.Millisecond}))
	})
	define("wait", types{i32, i32, i64}, types{i32}, func(at *Attempt, m api.Memory, s []uint64) {
		list := []byte(text(m, s[0], 4*s[1]))
		numbers := make([]int32, len(list)/4)
		for i := range numbers {
			numbers[i] = int32(binary.LittleEndian.Uint32(list[4*i:]))
		}
		s[0] = api.EncodeI32(at.wait(numbers, int64(s[2])))
	})
	define("read", types{i32, i32, i32}, types{i32}, func(at *Attempt, m api.Memory, s []uint64) {
		s[0] = api.EncodeI32(at.read(m, api.DecodeI32(s[0]), s[1], s[2]))
	})
	define("drop", types{i32}, types{i32}, func(at *Attempt, _ api.Memory, s []uint64) {
		s[0] = api.EncodeI32(at.Ops.drop(api.DecodeI32(s[0])))
	})
	define("http_defer", types{i32, i32, i32, i32, i32, i32}, types{i32}, func(at *Attempt, m api.Memory, s []uint64) {
		if at.HTTP == nil {
			s[0] = api.EncodeI32(-2)
			return
		}
		at.Ops.Deferred = append(at.Ops.Deferred, fmt.Sprint(text(m, s[2], s[3]), " ", text(m, s[4], s[5]), " ", text(m, s[0], s[1])))
		s[0] = api.EncodeI32(at.newJob("deferred"))
	})
}
