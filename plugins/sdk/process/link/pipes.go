package link

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"google.golang.org/protobuf/proto"
)

// Pipes is a stream of messages over two pipes: of each its length, in four bytes, the least significant first, and
// then the message. The goroutine that sends writes, and the one that receives reads. gRPC has one more at each of
// these places, and to wake somebody takes longer than all else where there is little to do. Sockets, too, wake one too many:
// whoever waits for something to read hears that there is room to write.
//
// Send is called by one goroutine at a time, and so is Receive. Close may be called by any, and ends both.
type Pipes[Out, In proto.Message] struct {
	read  io.ReadCloser
	write io.WriteCloser
	in    *bufio.Reader
	body  []byte // of what was received last; reused
	out   []byte // what was sent last; reused
}

// NewPipes returns a stream over the ends of two pipes, which it closes.
func NewPipes[Out, In proto.Message](read io.ReadCloser, write io.WriteCloser) *Pipes[Out, In] {
	return &Pipes[Out, In]{read: read, write: write, in: bufio.NewReaderSize(read, 32<<10)}
}

// headBytes is the length of a length.
const headBytes = 4

// Send sends a message. It waits while the other side doesn't read.
func (p *Pipes[Out, In]) Send(m Out) error {
	var err error
	p.out, err = proto.MarshalOptions{}.MarshalAppend(append(p.out[:0], make([]byte, headBytes)...), m)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	size := len(p.out) - headBytes
	if size > MaxMessage {
		return fmt.Errorf("send a message: it has %d bytes, and may have %d", size, MaxMessage)
	}
	binary.LittleEndian.PutUint32(p.out, uint32(size))
	_, err = p.write.Write(p.out)
	p.out = shrink(p.out)
	return asEnd(err)
}

// Receive receives a message into m, which keeps nothing of what was read. The end of the stream is [io.EOF],
// whichever side has brought it about.
func (p *Pipes[Out, In]) Receive(m In) error {
	var head [headBytes]byte
	if _, err := io.ReadFull(p.in, head[:]); err != nil {
		return asEnd(err)
	}
	size := int(binary.LittleEndian.Uint32(head[:]))
	if size > MaxMessage {
		return fmt.Errorf("receive a message: it has %d bytes, and may have %d", size, MaxMessage)
	}
	if cap(p.body) < size {
		p.body = make([]byte, size)
	}
	p.body = p.body[:size]
	if _, err := io.ReadFull(p.in, p.body); err != nil {
		return asEnd(err)
	}
	err := proto.Unmarshal(p.body, m)
	p.body = shrink(p.body)
	if err != nil {
		return fmt.Errorf("decode a message: %w", err)
	}
	return nil
}

// Close ends the stream.
func (p *Pipes[Out, In]) Close() error { return errors.Join(p.read.Close(), p.write.Close()) }

// keepBytes is the size of a buffer that is kept for the next message.
const keepBytes = 1 << 20

func shrink(b []byte) []byte {
	if cap(b) > keepBytes {
		return nil
	}
	return b
}

// asEnd returns io.EOF for all the ways in which the end of a pipe shows itself.
func asEnd(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.EPIPE) {
		return io.EOF
	}
	return err
}

// Ends are one process's ends of two pipes.
type Ends struct{ Read, Write *os.File }

// Close closes both.
func (e Ends) Close() error { return errors.Join(e.Read.Close(), e.Write.Close()) }

// NewEnds returns the ends of two pipes: those of this process, and those that a child inherits, in the order in which
// [ServePipes] expects them.
func NewEnds() (own, child Ends, err error) {
	var ofOwn, ofChild Ends
	if ofChild.Read, ofOwn.Write, err = os.Pipe(); err != nil {
		return own, child, fmt.Errorf("make a pipe: %w", err)
	}
	if ofOwn.Read, ofChild.Write, err = os.Pipe(); err != nil {
		return own, child, errors.Join(fmt.Errorf("make a pipe: %w", err), ofChild.Read.Close(), ofOwn.Write.Close())
	}
	return ofOwn, ofChild, nil
}

// inherited returns the ends that this process has been started with, the first of its files after the standard streams.
func inherited() (Ends, error) {
	const first = 3
	for fd := first; fd < first+2; fd++ {
		// So that a goroutine waits for it, and no thread.
		if err := syscall.SetNonblock(fd, true); err != nil {
			return Ends{}, fmt.Errorf("the host has not given the process its pipes: %w", err)
		}
		syscall.CloseOnExec(fd)
	}
	return Ends{Read: os.NewFile(first, "host"), Write: os.NewFile(first+1, "host")}, nil
}
