package journal

import (
	"encoding/binary"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/jobhost/jobhost"
)

// Task is an attempt, or the load of a plugin, as it is recorded.
type Task struct {
	Worker string
	Job    string // or the id of the fiber, or the digest of the plugin being loaded
	Fiber  bool
	Load   bool // no attempt: the plugin is being loaded, or creates its first sandbox
	Place  Place
	Index  int // of the task in its job
	Number int // of the attempt, from 1
	// Key and Token are those of the task and its lease in the store; 0 for fibers and loads.
	Key, Token int64
	Began      time.Time // to the millisecond
}

// Place is where an attempt runs.
type Place uint8

// The places. The file has these numbers.
const (
	Inline  Place = 1 // a guest in the process of the host
	Process Place = 2 // a guest in a process of its own
	Host    Place = 3 // no guest: a function of the host
)

// Phase is the progress of an attempt.
type Phase uint8

// The phases. The file has these numbers.
const (
	Waiting  Phase = 1 // for a process: none of its code has run
	Running  Phase = 2 // its code runs
	Settling Phase = 3 // it has ended, but that is not durable yet
)

// The layout of a slot. All numbers are little-endian. The state is written last and cleared
// first, so a slot half-written at a crash is free.
const (
	atState  = 0 // uint32: phase, place << 8, fiber << 16, load << 17; 0 = the slot is free
	atIndex  = 4
	atNumber = 8
	atKey    = 16
	atToken  = 24
	atBegan  = 32 // milliseconds since 1970
	atWorker = 40 // a byte with the length, then the text
	atJob    = atWorker + 1 + jobhost.MaxWorkerBytes
	slotSize = 256

	fiberBit = 1 << 16
	loadBit  = 1 << 17
	maxJob   = slotSize - atJob - 1
)

// Entry is a recorded attempt. The methods of a nil Entry do nothing.
type Entry struct {
	journal *Journal
	index   uint32
	live    atomic.Bool
}

func (e *Entry) slot() []byte {
	at := headerBytes + int(e.index)*slotSize
	return e.journal.mem[at : at+slotSize : at+slotSize]
}

// word is a number in the mapped memory that is accessed atomically.
func (j *Journal) word(at int) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(&j.mem[at])) }

func (e *Entry) state() *atomic.Uint32 {
	return e.journal.word(headerBytes + int(e.index)*slotSize + atState)
}

func (e *Entry) write(t *Task, phase Phase) {
	defer e.journal.survive(debug.SetPanicOnFault(true))
	s := e.slot()
	binary.LittleEndian.PutUint32(s[atIndex:], uint32(t.Index))
	binary.LittleEndian.PutUint32(s[atNumber:], uint32(t.Number))
	binary.LittleEndian.PutUint64(s[atKey:], uint64(t.Key))
	binary.LittleEndian.PutUint64(s[atToken:], uint64(t.Token))
	binary.LittleEndian.PutUint64(s[atBegan:], uint64(t.Began.UnixMilli()))
	s[atWorker] = byte(copy(s[atWorker+1:atJob], t.Worker))
	s[atJob] = byte(copy(s[atJob+1:], t.Job))
	state := uint32(phase) | uint32(t.Place)<<8
	if t.Fiber {
		state |= fiberBit
	}
	if t.Load {
		state |= loadBit
	}
	e.state().Store(state)
}

// Run notes that an attempt which was [Waiting] now runs.
func (e *Entry) Run() { e.become(Running) }

// Settle notes that the attempt has ended, and that this is not durable yet.
func (e *Entry) Settle() { e.become(Settling) }

func (e *Entry) become(phase Phase) {
	if e == nil {
		return
	}
	defer e.journal.survive(debug.SetPanicOnFault(true))
	state := e.state()
	state.Store(state.Load()&^0xff | uint32(phase))
}

// End removes the attempt: its outcome is durable, or it was put back. Further calls do
// nothing until the entry is reused.
func (e *Entry) End() {
	if e == nil || !e.live.CompareAndSwap(true, false) {
		return
	}
	e.clear()
	e.journal.push(e.index)
}

func (e *Entry) clear() {
	defer e.journal.survive(debug.SetPanicOnFault(true))
	e.state().Store(0)
}

// read returns the attempt left in a slot. Invalid contents count as none.
func (e *Entry) read() (left Left, ok bool) {
	defer e.journal.survive(debug.SetPanicOnFault(true))
	state, s := e.state().Load(), e.slot()
	if state == 0 {
		return Left{}, false
	}
	worker, job := int(s[atWorker]), int(s[atJob])
	left = Left{entry: e, Phase: Phase(state), Task: Task{
		Place: Place(state >> 8), Fiber: state&fiberBit != 0, Load: state&loadBit != 0,
		Index: int(binary.LittleEndian.Uint32(s[atIndex:])), Number: int(binary.LittleEndian.Uint32(s[atNumber:])),
		Key: int64(binary.LittleEndian.Uint64(s[atKey:])), Token: int64(binary.LittleEndian.Uint64(s[atToken:])),
		Began: time.UnixMilli(int64(binary.LittleEndian.Uint64(s[atBegan:]))),
	}}
	if worker > jobhost.MaxWorkerBytes || job > maxJob || left.Phase < Waiting || left.Phase > Settling || left.Place < Inline || left.Place > Host {
		e.state().Store(0)
		return Left{}, false
	}
	// Copied, since the slot is reused.
	left.Worker, left.Job = strings.Clone(string(s[atWorker+1:atWorker+1+worker])), strings.Clone(string(s[atJob+1:atJob+1+job]))
	return left, true
}
