// Package journal records the running attempts and loads where a crash of the host can't destroy
// the record: in a memory-mapped file. A note is a few stores to memory, with no system call, no
// lock and no allocation, and the kernel keeps it however the process ends. It doesn't cover power
// failures: the file is never synced, and notes from another boot are not trusted.
//
//	Begin ─► (Run) ─► Settle ─► End        an attempt between these at a crash is in Left
//
// The caller must have exclusive use of the file, as with a store whose lock it holds.
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

// FileName is the name of the file in the folder of the store.
const FileName = "jobhost.running"

// Slots is how many attempts can be noted at a time: the running ones, and those whose settlement
// is not on disk yet.
const Slots = 16 << 10

// Journal is an open journal. A nil Journal records nothing. It is safe for concurrent use.
type Journal struct {
	file *os.File
	mem  []byte

	// free is the top of the stack of free slots, as index + 1 in the lower half; the upper half
	// counts changes, so that a change which restores the same top is detected.
	free  atomic.Uint64
	below []atomic.Uint32 // the slot below each one in the stack, as index + 1
	slots []Entry

	previous Previous
	missed   func()      // called for each attempt that could not be noted
	broken   atomic.Bool // the file can't be written
	memo     sync.Mutex  // held while the memo is changed
}

// Previous is what the previous host left.
type Previous struct {
	// Crashed: it ended without Close, after the machine was booted.
	Crashed bool
	// Memo is the text it stored last, even before a Close; nil = none, or the machine has been
	// rebooted since.
	Memo []byte
	// Left are the attempts and loads that were running. Each keeps its slot until its End.
	Left []Left
}

// Left is an attempt or a load that was running when a host crashed.
type Left struct {
	Task
	Phase Phase
	entry *Entry
}

// End removes it: its outcome is durable.
func (l *Left) End() { l.entry.End() }

// Open opens the journal at path, and creates it with mode 0600 if it doesn't exist. missed is
// called for each attempt that can't be noted, and must not block.
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

// place gives the file its size and allocates all of it on disk: a store to an unallocated page
// could fault. Contents that no host of this boot wrote are cleared.
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
	// Overwritten in place: space that is freed first may be gone when it is needed again.
	if _, err = j.file.WriteAt(make([]byte, fileBytes), 0); err == nil {
		return j.file.Truncate(fileBytes)
	}
	if info.Size() != fileBytes { // give back what was allocated
		err = errors.Join(err, j.file.Truncate(0))
	}
	return err
}

// stack puts the slots on the free stack, the first one on top, except for those that were left in
// use.
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

// Previous returns what the previous host left.
func (j *Journal) Previous() Previous {
	if j == nil {
		return Previous{}
	}
	return j.previous
}

// Begin notes an attempt. It returns nil if that is not possible, which is counted and otherwise
// harmless: methods of a nil entry do nothing.
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

// Close records that this host has not crashed. No entry may be used afterwards.
func (j *Journal) Close() error {
	if j == nil {
		return nil
	}
	j.guarded(func() { j.word(atRunning).Store(0) })
	return errors.Join(syscall.Munmap(j.mem), j.file.Close())
}

// guarded runs code that touches the mapped memory. If a page isn't available (the disk is full
// and the file system is copy-on-write, or the file was truncated), that must not crash the host;
// the journal is abandoned instead.
func (j *Journal) guarded(touch func()) {
	defer j.survive(debug.SetPanicOnFault(true))
	touch()
}

// survive is deferred around accesses to the mapped memory, with the previous setting of
// [debug.SetPanicOnFault].
func (j *Journal) survive(before bool) {
	debug.SetPanicOnFault(before)
	if recover() != nil && !j.broken.Swap(true) {
		j.missed()
	}
}
