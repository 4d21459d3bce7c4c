package process

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
)

// unsent keeps frames, like a run that can't send them yet.
type unsent []*protocol.Call

func (u *unsent) Call(c *protocol.Call) (*protocol.Answer, error) {
	*u = append(*u, c)
	return &protocol.Answer{}, nil
}

func (u *unsent) Post(c *protocol.Call) error {
	*u = append(*u, c)
	return nil
}

// TestFarCopies: guest memory is copied into frames, as it may belong to another
// job, or to none, by the time they are sent.
func TestFarCopies(t *testing.T) {
	t.Parallel()
	memory := bytes.Repeat([]byte("m"), 100)
	calls := &unsent{}
	f := &far{run: calls}
	_, _ = farOutput{f}.Write(memory)
	f.Emit(nil, memory)
	f.Log(0, memory)
	f.Submit(memory, 0)
	f.KVGet(memory)
	f.KVSet(memory, memory, 0)
	f.KVDelete(memory)
	f.KVAdd(memory, 1)
	f.KVCompareAndSet(memory, 1, memory)
	f.SetState(t.Context(), "tag", 1, memory, memory)
	f.Send(memory)
	f.Defer(memory, "entry", memory)
	if len(*calls) != 12 {
		t.Fatalf("%d calls", len(*calls))
	}
	for i := range memory {
		memory[i] = 'x'
	}
	for _, c := range *calls {
		if encoded, err := proto.Marshal(c); err != nil || bytes.Contains(encoded, []byte("xx")) {
			t.Errorf("%T is of the guest's memory: %v", c.GetCall(), err)
		}
	}
}
