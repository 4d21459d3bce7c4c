// Package journal keeps which attempts and loads are under way where a crash of the host
// can't take it: in a file that is mapped into memory. A note is a few stores to
// memory, with no system call, no lock and no allocation, and the kernel keeps it
// however the process ends. It is not for power loss: the file is never synced, and
// what another boot has left is not believed.
//
//	Begin ─► (Run) ─► Settle ─► End        whatever is between them at a crash is in Left
//
// The caller must be the only one with the file, as with a store whose lock it holds.
package journal

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
)

// FileName is the name of the file, in the folder of the store.
const FileName = "jobhost.running"

// Slots is how many attempts can be noted at one time: those that run, and those
// whose settlement is on its way to the disk.
const Slots = 16 << 10

// Journal is an open journal. A nil Journal notes nothing. Its methods may be
// called from many goroutines.
type Journal struct {
	file *os.File
	mem  []byte

	// free is the top of the stack of free slots, as index + 1 in the lower half;
	// the upper half counts changes, so that one is noticed that leaves the same top.
	free  atomic.Uint64
	below []atomic.Uint32 // the slot below each one in the stack, as index + 1
	slots []Entry

	previous Previous
	missed   func()      // told of each attempt that was not noted
	broken   atomic.Bool // the file can't be written
	memo     sync.Mutex  // held while what the file remembers is changed
}

// Previous is what the host before this one has left.
type Previous struct {
	// Crashed: it ended without Close, since the machine was started.
	Crashed bool
	// Memo is what it remembered last, also after a Close; nil = nothing, or the
	// machine was started since.
	Memo []byte
	// Left are the attempts and loads that were under way. Each keeps its place until it is ended.
	Left []Left
}

// Left is an attempt, or a load, that was under way when a host crashed.
type Left struct {
	Task
	Phase Phase
	entry *Entry
}

// End forgets it, as what became of it is durable.
func (l *Left) End() { l.entry.End() }

// Open opens the journal of a path, which is made with mode 0600 if it is not there.
// missed is called for each attempt that can't be noted, and must not block.
func Open(path string, missed func()) (_ *Journal, err error) {
	j := &Journal{below: make([]atomic.Uint32, Slots), slots: make([]Entry, Slots), missed: missed}
	if j.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, fmt.Errorf("open the journal of running tasks: %w", err)
	}
	boot := bootID()
	if err = j.place(boot); err == nil {
		j.mem, err = syscall.Mmap(int(j.file.Fd()), 0, fileBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("map the journal of running tasks %s: %w", path, err), j.file.Close())
	}
	j.stack()
	j.guarded(func() { j.readHeader(); j.writeHeader(boot) })
	return j, nil
}

// place gives the file its size, with room on the disk for all of it: a store to a
// page without room would be a fault. What no host of this boot has left is cleared.
func (j *Journal) place(boot string) error {
	info, err := j.file.Stat()
	if err != nil {
		return err
	}
	if info.Mode().Perm() != 0o600 {
		if err := j.file.Chmod(0o600); err != nil {
			return err
		}
	}
	head := make([]byte, headerBytes)
	if n, _ := j.file.ReadAt(head, 0); n == len(head) && info.Size() == fileBytes && isHeader(head, boot) {
		return nil
	}
	// Written where it is: its room may be gone before it is taken again.
	if _, err = j.file.WriteAt(make([]byte, fileBytes), 0); err == nil {
		return j.file.Truncate(fileBytes)
	}
	if info.Size() != fileBytes { // what it got is better left to others
		err = errors.Join(err, j.file.Truncate(0))
	}
	return err
}

// stack puts the slots in order, the first on top, but for those that were left.
func (j *Journal) stack() {
	top := uint32(0)
	for i := Slots - 1; i >= 0; i-- {
		e := &j.slots[i]
		e.journal, e.index = j, uint32(i)
		if left, ok := e.read(); ok {
			e.live.Store(true)
			j.previous.Left = append(j.previous.Left, left)
			continue
		}
		j.below[i].Store(top)
		top = uint32(i) + 1
	}
	j.free.Store(uint64(top))
}

// Previous returns what the host before has left.
func (j *Journal) Previous() Previous {
	if j == nil {
		return Previous{}
	}
	return j.previous
}

// Begin notes an attempt. It returns nil when that is not possible, which is counted
// and otherwise as good: methods of a nil entry do nothing.
func (j *Journal) Begin(t *Task, phase Phase) *Entry {
	if j == nil {
		return nil
	}
	i, ok := j.pop()
	if !ok || j.broken.Load() {
		if ok {
			j.push(i)
		}
		j.missed()
		return nil
	}
	e := &j.slots[i]
	e.live.Store(true)
	e.write(t, phase)
	return e
}

func (j *Journal) pop() (index uint32, ok bool) {
	for {
		top := j.free.Load()
		if uint32(top) == 0 {
			return 0, false
		}
		index = uint32(top) - 1
		if j.free.CompareAndSwap(top, (top>>32+1)<<32|uint64(j.below[index].Load())) {
			return index, true
		}
	}
}

func (j *Journal) push(index uint32) {
	for {
		top := j.free.Load()
		j.below[index].Store(uint32(top))
		if j.free.CompareAndSwap(top, (top>>32+1)<<32|uint64(index+1)) {
			return
		}
	}
}

// Close tells the next host that this one has not crashed. No entry is used afterwards.
func (j *Journal) Close() error {
	if j == nil {
		return nil
	}
	j.guarded(func() { j.word(atRunning).Store(0) })
	return errors.Join(syscall.Munmap(j.mem), j.file.Close())
}

// guarded runs what touches the mapped memory. A page that can't be had (the disk is
// full and the file system copies what is written, or the file was cut) must not end
// the host: the journal is given up instead.
func (j *Journal) guarded(touch func()) {
	defer j.survive(debug.SetPanicOnFault(true))
	touch()
}

// survive is deferred around accesses to the mapped memory, with what
// [debug.SetPanicOnFault] was before.
func (j *Journal) survive(before bool) {
	debug.SetPanicOnFault(before)
	if recover() != nil && !j.broken.Swap(true) {
		j.missed()
	}
}
