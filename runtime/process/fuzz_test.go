package process

import (
	"math"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
)

// FuzzFrames has a run handle whatever a process sends: it comes to an outcome, and the host is unharmed.
func FuzzFrames(f *testing.F) {
	extremes := []int64{math.MinInt64, math.MinInt32, -1, 0, 1, math.MaxInt32, math.MaxInt64}
	for _, n := range extremes {
		i := int32(n)
		for _, c := range []*protocol.Call{
			{Call: &protocol.Call_Wait{Wait: &protocol.Wait{Handles: []int32{i, 1 << 20}, TimeoutMs: n}}},
			{Call: &protocol.Call_Read{Read: &protocol.Read{Handle: i, Max: i}}},
			{Call: &protocol.Call_ReadInput{ReadInput: &protocol.ReadInput{Max: i}}},
			{Call: &protocol.Call_Timer{Timer: &protocol.Timer{Ms: n}}},
			{Call: &protocol.Call_Drop{Drop: &protocol.Drop{Handle: i}}},
			{Call: &protocol.Call_Submit{Submit: &protocol.Submit{Spec: []byte("worker: a\n\n"), When: i}}},
			{Call: &protocol.Call_Metric{Metric: &protocol.Metric{Kind: i, Name: "a"}}},
			{Call: &protocol.Call_Observe{Observe: &protocol.Observe{Id: i, Value: float64(n)}}},
			{Call: &protocol.Call_Progress{Progress: &protocol.Progress{Done: n, Total: -n}}},
			{Call: &protocol.Call_KvAdd{KvAdd: &protocol.KVAdd{Key: []byte("a"), Delta: n}}},
			{Call: &protocol.Call_KvSet{KvSet: &protocol.KVSet{Key: []byte("a"), TtlMs: n}}},
			{Call: &protocol.Call_StateGet{StateGet: &protocol.StateGet{Task: i, Tag: "a"}}},
			{Call: &protocol.Call_Fetch{Fetch: &protocol.Fetch{Request: []byte("GET http://a/\n\n"), MaxBytes: n}}},
			{Call: &protocol.Call_Log{Log: &protocol.Log{Level: i, Line: []byte("a\n")}}},
			{},
		} {
			c.Id = uint32(i)
			add(f, &protocol.WorkerFrame{Run: uint64(n), Frame: &protocol.WorkerFrame_Call{Call: c}})
		}
		add(f, resultFrame(), &protocol.WorkerFrame{Frame: &protocol.WorkerFrame_Result{Result: &protocol.Result{
			Outcome: &protocol.Result_SnoozeMs{SnoozeMs: n}, Sandbox: &protocol.Sandbox{Fuel: n, ResetNs: n, Replace: "a"},
		}}})
	}
	inner, err := proto.Marshal(&protocol.WorkerFrame{Frame: &protocol.WorkerFrame_Piece{Piece: &protocol.Piece{Last: true}}})
	if err != nil {
		f.Fatal(err)
	}
	add(f, &protocol.WorkerFrame{Frame: &protocol.WorkerFrame_Piece{Piece: &protocol.Piece{Data: inner, Last: true}}})
	add(f, &protocol.WorkerFrame{Frame: &protocol.WorkerFrame_Result{Result: &protocol.Result{Outcome: &protocol.Result_Failure{
		Failure: &protocol.Failure{Code: "a b", Category: "x", Severity: "x", Message: "\x1b", Context: "[", Stack: "\x1b\n"},
	}}}})
	f.Fuzz(func(t *testing.T, data []byte) {
		var said protocol.ToHost
		if proto.Unmarshal(data, &said) != nil {
			return // the stream ends before a run sees it
		}
		child, at := newFake(t), networked()
		at.Deadline = time.Now().Add(10 * time.Second)
		r, end := child.start(t.Context(), t, at)
		for _, frame := range said.GetFrames() {
			if r.take(frame, len(data) <= lightFrame) != nil {
				break
			}
		}
		if err := r.take(resultFrame(), false); err != nil {
			return // a frame was broken, which ends the stream
		}
		result, why := end()
		if out := r.resultOf(t.Context(), result, why); out.Outcome.Kind == 0 || out.Outcome.Fuel < 0 || out.Reset < 0 {
			t.Errorf("the outcome of %v by %v is %+v", result, why, out)
		}
		if child.held != 0 || child.partial != 0 {
			t.Errorf("%d bytes are held, %d of pieces", child.held, child.partial)
		}
	})
}

// add adds a batch to the corpus.
func add(f *testing.F, frames ...*protocol.WorkerFrame) {
	data, err := proto.Marshal(&protocol.ToHost{Frames: frames})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
}
