package wasiabi

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
)

// listing is a directory being read. It keeps one batch of entries: the cookie
// of an entry is its number, and a guest that goes back further than the batch
// makes it start over.
type listing struct {
	file  *os.File
	batch []fs.FileInfo
	start uint64 // number of the first in the batch
	end   bool   // the batch is the last one
}

const (
	batchEntries = 64
	direntSize   = 24
	// ownEntries are . and .., which the kernel's listing leaves to us.
	ownEntries = 2
)

// fd_readdir(fd, buf, buf_len, cookie, bufused) writes entries, starting at
// number cookie, until the buffer is full; the last may be truncated. A buffer
// that isn't full means the end.
func fdReaddir(s *System, m memory, a args) Errno {
	d, e := s.dir(a.u32(0), fdReaddirRight)
	if e != OK {
		return e
	}
	buf, e := m.view(a.u32(1), uint64(a.u32(2)))
	if e != OK {
		return e
	}
	if _, e := m.view(a.u32(4), 4); e != OK {
		return e
	}
	used := 0
	for cookie := a.u64(3); used < len(buf); cookie++ {
		entry, ok, e := s.entry(d.dir, cookie)
		if e != OK {
			return e
		}
		if !ok {
			break
		}
		used += entry.put(buf[used:], cookie+1)
	}
	return m.put32(a.u32(4), uint32(used))
}

// dirent is one entry.
type dirent struct {
	name     string
	ino      uint64
	filetype filetype
}

// put writes as much of an entry as fits.
func (d dirent) put(buf []byte, next uint64) int {
	var head [direntSize]byte
	binary.LittleEndian.PutUint64(head[:], next)
	binary.LittleEndian.PutUint64(head[8:], d.ino)
	binary.LittleEndian.PutUint32(head[16:], uint32(len(d.name)))
	head[20] = byte(d.filetype)
	n := copy(buf, head[:])
	return n + copy(buf[n:], d.name)
}

// entry returns the entry of a number; ok is false after the last.
func (s *System) entry(d *openDir, number uint64) (entry dirent, ok bool, e Errno) {
	switch number {
	case 0:
		// Reading from the start shows the current content.
		if d.list != nil {
			if e := d.list.rewind(); e != OK {
				return entry, false, e
			}
		}
		info, err := d.root.Stat(".")
		if err != nil {
			return entry, false, errnoOf(err)
		}
		return dirent{name: ".", ino: statOf(info).ino, filetype: directoryType}, true, OK
	case 1:
		// What is above a mount is not the guest's business.
		return dirent{name: "..", filetype: directoryType}, true, OK
	case math.MaxUint64:
		return entry, false, OK // it has no next
	}
	if d.list == nil {
		f, err := d.root.Open(".")
		if err != nil {
			return entry, false, errnoOf(err)
		}
		d.list = &listing{file: f}
		s.changed = true
	}
	info, e := d.list.find(s, number-ownEntries)
	if e != OK || info == nil {
		return entry, false, e
	}
	return dirent{name: info.Name(), ino: statOf(info).ino, filetype: typeOf(info.Mode())}, true, OK
}

// find returns the entry of a number, or nil after the last.
func (l *listing) find(s *System, number uint64) (fs.FileInfo, Errno) {
	if number < l.start {
		if e := l.rewind(); e != OK {
			return nil, e
		}
	}
	for number-l.start >= uint64(len(l.batch)) {
		if l.end {
			return nil, OK
		}
		if s.stopped() {
			return nil, EINTR
		}
		batch, err := l.file.Readdir(batchEntries)
		if errors.Is(err, io.EOF) {
			l.end = true
			return nil, OK
		}
		if err != nil {
			return nil, errnoOf(err)
		}
		l.start += uint64(len(l.batch))
		l.batch = batch
	}
	return l.batch[number-l.start], OK
}

func (l *listing) rewind() Errno {
	l.batch, l.start, l.end = nil, 0, false
	_, err := l.file.Seek(0, io.SeekStart)
	return errnoOf(err)
}
