package link

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"google.golang.org/protobuf/proto"
)

// Pipes is a stream of messages over two pipes: each is its length, in four bytes, little-endian, followed by the
// message. The sending goroutine writes, and the receiving one reads. gRPC has one more goroutine at each of these
// places, and waking one takes longer than everything else under light load. Sockets also wake one too many: a
// goroutine that waits to read is woken when there is room to write.
//
// Send is called by one goroutine at a time, and so is Receive. Close may be called by any, and ends both.
type Pipes[Out, In proto.Message] struct {
	read  io.ReadCloser
	write io.WriteCloser
	raw   syscall.RawConn // of read, if it is a file
	in    []byte          // bytes read; reused
	at    int             // how much of in was received
	size  int             // of the last received message
	out   []byte          // the last sent bytes; reused
}

// NewPipes returns a stream over the ends of two pipes, which it closes.
func NewPipes[Out, In proto.Message](read io.ReadCloser, write io.WriteCloser) *Pipes[Out, In] {
	p := &Pipes[Out, In]{read: read, write: write}
	if file, ok := read.(syscall.Conn); ok {
		p.raw, _ = file.SyscallConn() // without it, Poll finds only what was read before
	}
	return p
}

// headBytes is the size of a length.
const headBytes = 4

// Send sends a message. It blocks while the other side doesn't read.
func (p *Pipes[Out, In]) Send(m Out) error {
	var err error
	p.out, err = proto.MarshalOptions{}.MarshalAppend(append(p.out[:0], make([]byte, headBytes)...), m)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	size := len(p.out) - headBytes
	if size > MaxPiped {
		return fmt.Errorf("send a message: it has %d bytes, and may have %d", size, MaxPiped)
	}
	binary.LittleEndian.PutUint32(p.out, uint32(size))
	_, err = p.write.Write(p.out)
	p.out = shrink(p.out)
	return asEnd(err)
}

// Receive receives a message into m, which does not retain the read buffer. The end of the stream is
// [io.EOF], whichever side has ended it.
func (p *Pipes[Out, In]) Receive(m In) error {
	for {
		if ok, err := p.decode(m); ok || err != nil {
			return err
		}
		n, err := p.read.Read(p.room())
		if err = p.grow(n, err); err != nil {
			return err
		}
	}
}

// Poll is Receive without blocking: it reports whether there was a complete message.
func (p *Pipes[Out, In]) Poll(m In) (bool, error) {
	for {
		if ok, err := p.decode(m); ok || err != nil || p.raw == nil {
			return ok, err
		}
		var n int
		var err error
		room := p.room()
		failed := p.raw.Read(func(fd uintptr) bool {
			for {
				if n, err = syscall.Read(int(fd), room); err != syscall.EINTR {
					return true
				}
			}
		})
		switch {
		case failed != nil: // it is closed
			return false, io.EOF
		case err == syscall.EAGAIN:
			return false, nil
		case n == 0 && err == nil:
			err = io.EOF
		}
		if err = p.grow(max(n, 0), err); err != nil {
			return false, err
		}
	}
}

// decode decodes a message from the bytes read, if it is complete.
func (p *Pipes[Out, In]) decode(m In) (ok bool, err error) {
	size, known, err := p.nextSize()
	if err != nil || !known || len(p.in)-p.at < headBytes+size {
		return false, err
	}
	body := p.in[p.at+headBytes:][:size]
	p.size = size
	if p.at += headBytes + size; p.at == len(p.in) {
		p.in, p.at = shrink(p.in)[:0], 0
	}
	if err := proto.Unmarshal(body, m); err != nil {
		return false, fmt.Errorf("decode a message: %w", err)
	}
	return true, nil
}

// nextSize returns the size of the next message, if its length was read.
func (p *Pipes[Out, In]) nextSize() (size int, known bool, err error) {
	if len(p.in)-p.at < headBytes {
		return 0, false, nil
	}
	head := binary.LittleEndian.Uint32(p.in[p.at:])
	if head > MaxPiped {
		return 0, false, fmt.Errorf("receive a message: it has %d bytes, and may have %d", head, MaxPiped)
	}
	return int(head), true, nil
}

// room returns the buffer to read into, with room for at least the rest of the next message.
func (p *Pipes[Out, In]) room() []byte {
	size, _, _ := p.nextSize()
	need := max(headBytes+size, readBytes)
	if p.at > 0 {
		p.in = p.in[:copy(p.in, p.in[p.at:])]
		p.at = 0
	}
	if cap(p.in) < need {
		p.in = append(make([]byte, 0, need), p.in...)
	}
	return p.in[len(p.in):cap(p.in)]
}

// grow records what was read into room.
func (p *Pipes[Out, In]) grow(n int, err error) error {
	p.in = p.in[:len(p.in)+n]
	if n > 0 {
		return nil
	}
	return asEnd(err)
}

// readBytes is how much is read at once.
const readBytes = 64 << 10

// Size returns the size of the last received message.
func (p *Pipes[Out, In]) Size() int { return p.size }

// Buffered returns how many bytes were read beyond the last received message.
func (p *Pipes[Out, In]) Buffered() int { return len(p.in) - p.at }

// Close ends the stream.
func (p *Pipes[Out, In]) Close() error { return errors.Join(p.read.Close(), p.write.Close()) }

// keepBytes is the size up to which a buffer is kept for the next message.
const keepBytes = 1 << 20

func shrink(b []byte) []byte {
	if cap(b) > keepBytes {
		return nil
	}
	return b
}

// asEnd returns io.EOF for all errors that signal the end of a pipe.
func asEnd(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.EPIPE) {
		return io.EOF
	}
	return err
}
