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

// Socket is a stream of messages over a connected socket: of each its length, in four bytes, the first the least
// significant, and then the message. The goroutine that sends writes, and the one that receives reads: gRPC has one
// more at each of these places, and to wake each takes longer than all else on an idle machine.
//
// Send is called by one goroutine at a time, and so is Receive. Close may be called by any, and ends both.
type Socket[Out, In proto.Message] struct {
	conn io.ReadWriteCloser
	in   *bufio.Reader
	body []byte // of what was received last; reused
	out  []byte // what was sent last; reused
}

// NewSocket returns a stream over a connected socket, which it closes.
func NewSocket[Out, In proto.Message](conn io.ReadWriteCloser) *Socket[Out, In] {
	return &Socket[Out, In]{conn: conn, in: bufio.NewReaderSize(conn, 32<<10)}
}

// Socketpair returns two connected sockets: one for this process, and one that is handed to a child.
func Socketpair() (own, child *os.File, err error) {
	syscall.ForkLock.RLock() // no process gets them that is started meanwhile
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("make a pair of sockets: %w", err)
	}
	child = os.NewFile(uintptr(fds[1]), "worker")
	if own, err = pollable(fds[0], "worker"); err != nil {
		return nil, nil, errors.Join(err, child.Close())
	}
	return own, child, nil
}

// pollable returns a socket for which a goroutine waits, and no thread, and which can be closed meanwhile.
func pollable(fd int, name string) (*os.File, error) {
	if err := syscall.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare a socket: %w", err), syscall.Close(fd))
	}
	return os.NewFile(uintptr(fd), name), nil
}

// headBytes is the length of a length.
const headBytes = 4

// Send sends a message. It waits while the other side doesn't read.
func (s *Socket[Out, In]) Send(m Out) error {
	var err error
	s.out, err = proto.MarshalOptions{}.MarshalAppend(append(s.out[:0], 0, 0, 0, 0), m)
	if err != nil {
		return err
	}
	size := len(s.out) - headBytes
	if size > MaxMessage {
		return fmt.Errorf("send a message: it has %d bytes, and may have %d", size, MaxMessage)
	}
	binary.LittleEndian.PutUint32(s.out, uint32(size))
	_, err = s.conn.Write(s.out)
	s.out = shrink(s.out)
	return asEnd(err)
}

// Receive receives a message into m, of which nothing is kept. The end of the stream is [io.EOF], whichever side has
// brought it about.
func (s *Socket[Out, In]) Receive(m In) error {
	var head [headBytes]byte
	if _, err := io.ReadFull(s.in, head[:]); err != nil {
		return asEnd(err)
	}
	size := int(binary.LittleEndian.Uint32(head[:]))
	if size > MaxMessage {
		return fmt.Errorf("receive a message: it has %d bytes, and may have %d", size, MaxMessage)
	}
	if cap(s.body) < size {
		s.body = make([]byte, size)
	}
	s.body = s.body[:size]
	if _, err := io.ReadFull(s.in, s.body); err != nil {
		return asEnd(err)
	}
	err := proto.Unmarshal(s.body, m)
	s.body = shrink(s.body)
	return err
}

// Close ends the stream.
func (s *Socket[Out, In]) Close() error { return s.conn.Close() }

// keepBytes is the size of a buffer that is kept for the next message.
const keepBytes = 1 << 20

func shrink(b []byte) []byte {
	if cap(b) > keepBytes {
		return nil
	}
	return b
}

// asEnd returns io.EOF for all the ways in which the end of a socket shows itself.
func asEnd(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return io.EOF
	}
	return err
}
