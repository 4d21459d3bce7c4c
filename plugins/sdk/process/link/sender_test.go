package link_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/jobhost/jobhost/plugins/sdk/process/link"
	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
)

// frame is one with an output, of a run.
func frame(run uint64, data []byte) *protocol.WorkerFrame {
	return &protocol.WorkerFrame{Run: run, Frame: &protocol.WorkerFrame_Result{Result: &protocol.Result{Outcome: &protocol.Result_Output{Output: data}}}}
}

// crowded says that others may be about to send.
func crowded() bool { return true }

func piece(of *protocol.WorkerFrame, data []byte, last bool) *protocol.WorkerFrame {
	return &protocol.WorkerFrame{Run: of.GetRun(), Frame: &protocol.WorkerFrame_Piece{Piece: &protocol.Piece{Data: data, Last: last}}}
}

// TestSenderKeepsOrder has many goroutines send concurrently: each one's frames arrive in order, all of them,
// and batches are bounded.
func TestSenderKeepsOrder(t *testing.T) {
	t.Parallel()
	const goroutines, each = 32, 500
	next := map[uint64]int{}
	came, all := 0, make(chan struct{})
	sending := false
	s := link.NewSender(func(frames []*protocol.WorkerFrame) error {
		if sending {
			t.Error("two send at once")
		}
		sending = true
		size := 0
		for _, f := range frames {
			size += proto.Size(f)
			if got, want := string(f.GetResult().GetOutput()), fmt.Sprintf("%d%1000d", next[f.GetRun()], 0); got != want {
				t.Errorf("run %d: %.20q instead of %.20q", f.GetRun(), got, want)
			}
			next[f.GetRun()]++
			if came++; came == goroutines*each {
				close(all)
			}
		}
		if size > 2<<20 {
			t.Errorf("a batch of %d bytes", size)
		}
		sending = false
		return nil
	}, piece, crowded)
	var senders sync.WaitGroup
	for run := range uint64(goroutines) {
		senders.Go(func() {
			for i := range each {
				f := frame(run, fmt.Appendf(nil, "%d%1000d", i, 0))
				if err := s.Send(f, proto.Size(f)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	senders.Wait()
	<-all
	s.Close(errors.New("over"))
	if err := s.Send(frame(1, nil), 0); err == nil {
		t.Error("sent after the end")
	}
}

// TestPieces sends frames that are too large for a batch: they come in pieces that make the same frame.
func TestPieces(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 2<<20 - 100, 2 << 20, 2<<20 + 1, 5 << 20, 64 << 20} {
		came := make(chan *protocol.WorkerFrame, 1)
		var pieces link.Pieces
		s := link.NewSender(func(frames []*protocol.WorkerFrame) error {
			for _, f := range frames {
				if n := proto.Size(f); n > link.MaxMessage/2 {
					t.Errorf("a frame of %d bytes", n)
				}
				if f.GetPiece() == nil {
					came <- f
					continue
				}
				whole := &protocol.WorkerFrame{}
				ok, err := pieces.Add(f.GetPiece(), whole)
				if err != nil {
					t.Error(err)
				}
				if ok {
					came <- whole
				}
			}
			return nil
		}, piece, crowded)
		want := frame(7, bytes.Repeat([]byte{'x'}, size))
		if err := s.Send(want, proto.Size(want)); err != nil {
			t.Fatal(err)
		}
		if got := <-came; !proto.Equal(got, want) {
			t.Errorf("%d bytes came as %d", size, len(got.GetResult().GetOutput()))
		}
	}
}

// TestTooManyPieces checks the bound on reassembled frames.
func TestTooManyPieces(t *testing.T) {
	t.Parallel()
	var pieces link.Pieces
	data := make([]byte, 2<<20)
	for range 100 {
		if _, err := pieces.Add(&protocol.Piece{Data: data}, &protocol.WorkerFrame{}); err != nil {
			return
		}
	}
	t.Error("200 MB were put together")
}
