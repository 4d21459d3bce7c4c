package sqlitedb

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"syscall"
)

// mapped is a file of a fixed size that is mapped into memory: to write it is no system call, and
// waits for nothing that the file system does.
type mapped struct {
	*os.File
	mem []byte
}

// openMapped opens a file, and gives it room on the disk for all of its size: a store to a
// page without room would crash the process.
func openMapped(path string, size int) (*mapped, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	m := &mapped{File: f}
	info, err := f.Stat()
	if err == nil && info.Size() < int64(size) {
		if _, err = f.WriteAt(make([]byte, int64(size)-info.Size()), info.Size()); err == nil {
			err = f.Sync()
		}
	}
	if err == nil {
		m.mem, err = syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return m, nil
}

// ReadAt implements [io.ReaderAt].
func (m *mapped) ReadAt(p []byte, off int64) (n int, err error) {
	err = m.guarded(func() {
		if off < int64(len(m.mem)) {
			n = copy(p, m.mem[off:])
		}
	})
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// WriteAt implements [io.WriterAt].
func (m *mapped) WriteAt(p []byte, off int64) (n int, err error) {
	if off+int64(len(p)) > int64(len(m.mem)) {
		return 0, io.ErrShortWrite
	}
	err = m.guarded(func() { n = copy(m.mem[off:], p) })
	return n, err
}

// guarded turns a memory fault, from the disk or a truncated file, into an error.
func (m *mapped) guarded(do func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: %v", m.Name(), p)
		}
	}()
	do()
	return nil
}

// Sync makes durable what was written; the file had its size when it was opened.
func (m *mapped) Sync() error { return dataSync(m.File) }

// Close unmaps and closes the file.
func (m *mapped) Close() error { return errors.Join(syscall.Munmap(m.mem), m.File.Close()) }
