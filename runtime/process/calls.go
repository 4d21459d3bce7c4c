package process

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// maxFetch bounds the body of a response that is sent as a whole: a frame has at most 80 MiB.
const maxFetch = 64 << 20

// maxRead is how much of a payload or message is read at once.
const maxRead = 1 << 20

// answer carries out a call of the process and sends back the result. A wait for what isn't ready is answered later.
func (r *run) answer(ctx context.Context, c *protocol.Call) {
	a := &protocol.Answer{Call: c.GetId()}
	if !r.call(ctx, c, a) {
		return
	}
	if c.GetId() != 0 {
		r.send(&protocol.HostFrame{Frame: &protocol.HostFrame_Answer{Answer: a}})
	}
}

// refuse answers a call of an attempt that is being stopped.
func (r *run) refuse(c *protocol.Call) {
	if c.GetId() != 0 {
		a := &protocol.Answer{Call: c.GetId(), Errno: int32(hostcall.ErrStopped)}
		r.send(&protocol.HostFrame{Frame: &protocol.HostFrame_Answer{Answer: a}})
	}
}

// call passes a call to the attempt, by groups of calls. It reports whether there is an answer already.
func (r *run) call(ctx context.Context, c *protocol.Call, a *protocol.Answer) bool {
	switch {
	case r.callOut(c, a), r.callKV(c, a), r.callState(ctx, c, a):
		return true
	}
	return r.callOp(ctx, c, a)
}

// callOut handles the calls about the job itself, and about what leaves it.
func (r *run) callOut(c *protocol.Call, a *protocol.Answer) bool {
	at, e := r.at, hostcall.OK
	switch c := c.GetCall().(type) {
	case *protocol.Call_Info:
		var value string
		if len(c.Info.GetKey()) > hostcall.MaxKeyBytes {
			e = hostcall.ErrInvalid
		} else {
			value, e = at.Info(c.Info.GetKey())
		}
		a.Data = []byte(value)
	case *protocol.Call_Output:
		e = at.AppendOutput(c.Output.GetData())
	case *protocol.Call_Log:
		at.Log(slog.Level(c.Log.GetLevel()), c.Log.GetLine())
	case *protocol.Call_Emit:
		e = at.Emit(c.Emit.GetData())
	case *protocol.Call_Submit:
		a.Number, e = number(at.Submit(c.Submit.GetSpec(), hostcall.SubmitTime(c.Submit.GetWhen())))
		if e == hostcall.OK {
			id, _ := at.Info(childKey(a.GetNumber()))
			a.Data = []byte(id)
		}
	case *protocol.Call_Metric:
		a.Number, e = number(at.Metric(hostcall.MetricKind(c.Metric.GetKind()), c.Metric.GetName()))
	case *protocol.Call_Observe:
		e = at.Observe(c.Observe.GetId(), c.Observe.GetValue())
	case *protocol.Call_Progress:
		at.Progress(c.Progress.GetDone(), c.Progress.GetTotal())
	case *protocol.Call_ReadInput:
		e = r.readInput(int(c.ReadInput.GetMax()), a)
	default:
		return false
	}
	a.Errno = int32(e)
	return true
}

// readInput reads the next part of the payload.
func (r *run) readInput(most int, a *protocol.Answer) hostcall.Errno {
	buf := make([]byte, min(max(most, 1), maxRead))
	n, err := r.at.ReadInput(buf)
	a.Data = buf[:n]
	if n == 0 && r.at.HasLost() {
		a.Error = valid(err.Error())
		return hostcall.ErrIO
	}
	return hostcall.OK
}

// callKV handles the calls about keys and values.
func (r *run) callKV(c *protocol.Call, a *protocol.Answer) bool {
	at := r.at
	var e hostcall.Errno
	switch c := c.GetCall().(type) {
	case *protocol.Call_KvGet:
		a.Data, a.Number, e = at.KVLookUp(c.KvGet.GetKey())
	case *protocol.Call_KvSet:
		e = at.KVSet(c.KvSet.GetKey(), c.KvSet.GetValue(), c.KvSet.GetTtlMs())
	case *protocol.Call_KvDelete:
		e = at.KVDelete(c.KvDelete.GetKey())
	case *protocol.Call_KvAdd:
		a.Number, e = at.KVAdd(c.KvAdd.GetKey(), c.KvAdd.GetDelta())
	case *protocol.Call_KvCompareAndSet:
		e = at.KVCompareAndSet(c.KvCompareAndSet.GetKey(), c.KvCompareAndSet.GetVersion(), c.KvCompareAndSet.GetValue())
	default:
		return false
	}
	a.Errno = int32(e)
	return true
}

// callState handles the calls about reported states.
func (r *run) callState(ctx context.Context, c *protocol.Call, a *protocol.Answer) bool {
	at := r.at
	var e hostcall.Errno
	switch c := c.GetCall().(type) {
	case *protocol.Call_StateSet:
		s := c.StateSet
		e = at.SetState(ctx, s.GetTag(), s.GetStatus(), s.GetMessage(), s.GetPayload())
	case *protocol.Call_StateGet:
		a.Data, e = at.State(ctx, c.StateGet.GetTask(), c.StateGet.GetTag())
	case *protocol.Call_StateWatch:
		a.Number, e = number(at.WatchState(ctx, c.StateWatch.GetTask(), c.StateWatch.GetTag()))
	default:
		return false
	}
	a.Errno = int32(e)
	return true
}

// callOp handles the calls that start something that takes time, or wait for it.
func (r *run) callOp(ctx context.Context, c *protocol.Call, a *protocol.Answer) (answered bool) {
	at := r.at
	var e hostcall.Errno
	switch op := c.GetCall().(type) {
	case *protocol.Call_Http:
		a.Number, e = number(at.Send(op.Http.GetRequest()))
	case *protocol.Call_Fetch:
		e = r.fetch(ctx, op.Fetch, a)
	case *protocol.Call_HttpDefer:
		d := op.HttpDefer
		a.Number, e = number(at.Defer(d.GetRequest(), d.GetEntry(), d.GetArgs()))
	case *protocol.Call_Timer:
		a.Number, e = number(at.Timer(op.Timer.GetMs()))
	case *protocol.Call_Receive:
		a.Number, e = number(at.Receive())
	case *protocol.Call_Drop:
		e = at.Drop(op.Drop.GetHandle())
	case *protocol.Call_Wait:
		return r.beginWait(ctx, newWaiting(c.GetId(), op.Wait), a)
	case *protocol.Call_Read:
		return r.beginWait(ctx, newReading(c.GetId(), op.Read), a)
	default:
		e = hostcall.ErrInvalid // from a protocol version that this one doesn't know
	}
	a.Errno = int32(e)
	return true
}

// fetch sends a request and waits for the response.
func (r *run) fetch(ctx context.Context, f *protocol.Fetch, a *protocol.Answer) hostcall.Errno {
	request, err := hostcall.ParseRequest(f.GetRequest())
	if err == nil {
		request.MaxBytes = min(cmp.Or(max(f.GetMaxBytes(), 0), maxFetch), maxFetch)
		request.Body = bytes.Clone(request.Body)
		var response *hostcall.HTTPResponse
		if response, err = r.at.Fetch(ctx, request); err == nil {
			a.Data = hostcall.AppendResponse(nil, response)
			return hostcall.OK
		}
	}
	explain(a, err)
	return hostcall.ErrnoOf(err)
}

// explain puts an error into an answer.
func explain(a *protocol.Answer, err error) {
	a.Error, a.Code = valid(err.Error()), valid(string(jobhost.CodeOf(err)))
	if e, ok := asError(err); ok {
		a.Error, a.Field = valid(e.Message), valid(e.Field)
	}
}

// valid replaces invalid UTF-8, which would end the stream.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// number converts the results of calls that return a number to those of the protocol.
func number(n int32, e hostcall.Errno) (int64, hostcall.Errno) { return int64(n), e }
