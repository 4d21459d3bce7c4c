package link_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/jobhost/jobhost/plugins/sdk/process/link"
	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
)

type (
	fromWorker = link.Pipes[*protocol.ToWorker, *protocol.ToHost]
	fromHost   = link.Pipes[*protocol.ToHost, *protocol.ToWorker]
)

// connected returns both sides of a stream.
func connected(t *testing.T) (host *fromWorker, worker *fromHost) {
	t.Helper()
	own, child, err := link.NewEnds()
	if err != nil {
		t.Fatal(err)
	}
	host = link.NewPipes[*protocol.ToWorker, *protocol.ToHost](own.Read, own.Write)
	worker = link.NewPipes[*protocol.ToHost, *protocol.ToWorker](child.Read, child.Write)
	t.Cleanup(func() { _, _ = host.Close(), worker.Close() })
	return host, worker
}

func outputs(sizes ...int) *protocol.ToHost {
	m := &protocol.ToHost{}
	for i, size := range sizes {
		m.Frames = append(m.Frames, frame(uint64(i), bytes.Repeat([]byte{byte(size)}, size)))
	}
	return m
}

// TestPipesCarryMessages sends messages of all sizes: empty ones, those that fill a buffer or a pipe to a byte, and the largest.
func TestPipesCarryMessages(t *testing.T) {
	t.Parallel()
	host, worker := connected(t)
	sizes := [][]int{{}, {0}, {1, 2, 3}, {32 << 10}, {link.MaxPiped - 100}, {7}}
	for n := range 64 {
		sizes = append(sizes, []int{32<<10 - n}, []int{64<<10 - n})
	}
	sent := make(chan error, 1)
	go func() {
		for _, s := range sizes {
			if err := worker.Send(outputs(s...)); err != nil {
				sent <- err
				return
			}
		}
		sent <- worker.Close()
	}()
	for _, s := range sizes {
		got := &protocol.ToHost{}
		if err := host.Receive(got); err != nil {
			t.Fatalf("%v: %v", s, err)
		}
		if want := outputs(s...); !proto.Equal(got, want) {
			t.Errorf("%v: another message came, of %d bytes instead of %d", s, proto.Size(got), proto.Size(want))
		}
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if err := host.Receive(&protocol.ToHost{}); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
	if err := host.Send(&protocol.ToWorker{}); !errors.Is(err, io.EOF) {
		t.Errorf("to nobody: %v", err)
	}
}

// TestPipesHaveBounds rejects a message that is too large before it is written, and one that claims to be before it is
// read.
func TestPipesHaveBounds(t *testing.T) {
	t.Parallel()
	_, worker := connected(t)
	if err := worker.Send(outputs(link.MaxPiped)); err == nil || !strings.Contains(err.Error(), "may have 4194304") {
		t.Errorf("a message that is too large: %v", err)
	}
	for head, want := range map[uint32]string{1<<32 - 1: "may have 4194304", 3: "decode a message"} {
		p := receiver(binary.LittleEndian.AppendUint32(nil, head), []byte{0xff, 0xff, 0xff})
		if err := p.Receive(&protocol.ToHost{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a message that says it has %d bytes: %v", head, err)
		}
	}
	for _, cut := range []string{"", "\x03", "\x03\x00\x00\x00", "\x03\x00\x00\x00\x00"} {
		if err := receiver([]byte(cut)).Receive(&protocol.ToHost{}); !errors.Is(err, io.EOF) {
			t.Errorf("cut after %q: %v", cut, err)
		}
	}
}

// TestPipesCloseEndsBoth closes a stream that is in use but whose other side neither reads nor writes.
func TestPipesCloseEndsBoth(t *testing.T) {
	t.Parallel()
	host, _ := connected(t)
	ended := make(chan error, 2)
	go func() {
		for {
			if err := host.Send(&protocol.ToWorker{Frames: []*protocol.HostFrame{{Run: 1}}}); err != nil {
				ended <- err
				return
			}
		}
	}()
	go func() { ended <- host.Receive(&protocol.ToHost{}) }()
	if err := host.Close(); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := <-ended; !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	}
}

// receiver returns a stream on which something has arrived.
func receiver(parts ...[]byte) *fromWorker {
	return link.NewPipes[*protocol.ToWorker, *protocol.ToHost](io.NopCloser(bytes.NewReader(bytes.Join(parts, nil))), nil)
}

// FuzzPipes receives whatever another process may write: messages, an error or the end, without more memory than the
// largest message takes.
func FuzzPipes(f *testing.F) {
	whole, err := proto.Marshal(outputs(0, 3))
	if err != nil {
		f.Fatal(err)
	}
	one := append(binary.LittleEndian.AppendUint32(nil, uint32(len(whole))), whole...)
	for _, said := range [][]byte{nil, {0, 0, 0, 0}, {0xff, 0xff, 0xff, 0xff}, {0, 0, 0, 1, 0}, one, append(one, one[:7]...)} {
		f.Add(said)
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		p, left := receiver(said), len(said)
		for {
			m := &protocol.ToHost{}
			if err := p.Receive(m); err != nil {
				return
			}
			if left -= 4; left < 0 {
				t.Fatal("more messages came than were written")
			}
		}
	})
}

// TestPipesPoll polls for messages without blocking: none, a part of one, one that follows another.
func TestPipesPoll(t *testing.T) {
	t.Parallel()
	own, child, err := link.NewEnds()
	if err != nil {
		t.Fatal(err)
	}
	host := link.NewPipes[*protocol.ToWorker, *protocol.ToHost](own.Read, own.Write)
	poll := func(want bool, size int) {
		t.Helper()
		m := &protocol.ToHost{}
		if ok, err := host.Poll(m); err != nil || ok != want || ok && !proto.Equal(m, outputs(size)) {
			t.Errorf("%v %v, a message of %d bytes", ok, err, proto.Size(m))
		}
	}
	message := func(size int) []byte {
		body, err := proto.Marshal(outputs(size))
		if err != nil {
			t.Fatal(err)
		}
		return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
	}
	write := func(b []byte) {
		t.Helper()
		if _, err := child.Write.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	poll(false, 0)
	first, second := message(3), message(5000)
	write(first[:2])
	poll(false, 0)
	write(first[2:5])
	poll(false, 0)
	write(append(first[5:], second...))
	poll(true, 3)
	if n := host.Buffered(); n != len(second) {
		t.Errorf("%d bytes are buffered, and %d of the next message were written", n, len(second))
	}
	poll(true, 5000)
	poll(false, 0)
	if err := child.Close(); err != nil {
		t.Error(err)
	}
	if ok, err := host.Poll(&protocol.ToHost{}); ok || !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v %v", ok, err)
	}
	if err := host.Close(); err != nil {
		t.Error(err)
	}
	if ok, err := host.Poll(&protocol.ToHost{}); ok || !errors.Is(err, io.EOF) {
		t.Errorf("closed: %v %v", ok, err)
	}
}
