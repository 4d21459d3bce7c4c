package process

import (
	"bytes"
	"slices"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
)

// HTTP implements [jobhost.Remote].
func (r *remote) HTTP(text []byte) int32 {
	return r.number(&protocol.Call{Call: &protocol.Call_Http{Http: &protocol.HTTP{Request: text}}})
}

// HTTPDefer implements [jobhost.Remote].
func (r *remote) HTTPDefer(text []byte, entry string, args []byte) int32 {
	c := &protocol.HTTPDefer{Request: text, Entry: entry, Args: bytes.Clone(args)}
	return r.number(&protocol.Call{Call: &protocol.Call_HttpDefer{HttpDefer: c}})
}

// Timer implements [jobhost.Remote].
func (r *remote) Timer(ms int64) int32 {
	return r.number(&protocol.Call{Call: &protocol.Call_Timer{Timer: &protocol.Timer{Ms: ms}}})
}

// Receive implements [jobhost.Remote].
func (r *remote) Receive() int32 {
	return r.number(&protocol.Call{Call: &protocol.Call_Receive{Receive: &protocol.Receive{}}})
}

// Wait implements [jobhost.Remote].
func (r *remote) Wait(numbers []int32, timeout int64) int32 {
	c := &protocol.Wait{Handles: slices.Clone(numbers), TimeoutMs: timeout}
	return r.number(&protocol.Call{Call: &protocol.Call_Wait{Wait: c}})
}

// Read implements [jobhost.Remote].
func (r *remote) Read(number int32) (message []byte, e jobhost.Errno) {
	for {
		part, e := r.read(number)
		if e != 0 {
			return nil, e
		}
		if message == nil {
			message = part
		} else {
			message = append(message, part...)
		}
		if len(part) < maxRead { // there was room for more
			return message, 0
		}
	}
}

// Next implements [jobhost.Remote]. No message of a stream is longer than what is read at once.
func (r *remote) Next(number int32) ([]byte, jobhost.Errno) { return r.read(number) }

func (r *remote) read(number int32) ([]byte, jobhost.Errno) {
	a, e := r.ask(&protocol.Call{Call: &protocol.Call_Read{Read: &protocol.Read{Handle: number, Max: maxRead}}})
	return a.GetData(), e
}

// Drop implements [jobhost.Remote]. It doesn't wait for an answer.
func (r *remote) Drop(number int32) {
	r.post(&protocol.Call{Call: &protocol.Call_Drop{Drop: &protocol.Drop{Handle: number}}})
}

// StateSet implements [jobhost.Remote].
func (r *remote) StateSet(tag string, status int32, message string, payload []byte) jobhost.Errno {
	s := &protocol.StateSet{Tag: tag, Status: status, Message: []byte(message), Payload: bytes.Clone(payload)}
	return r.errno(&protocol.Call{Call: &protocol.Call_StateSet{StateSet: s}})
}

// StateGet implements [jobhost.Remote].
func (r *remote) StateGet(task int32, tag string) ([]byte, jobhost.Errno) {
	a, e := r.ask(&protocol.Call{Call: &protocol.Call_StateGet{StateGet: &protocol.StateGet{Task: task, Tag: tag}}})
	return a.GetData(), e
}

// StateWatch implements [jobhost.Remote].
func (r *remote) StateWatch(task int32, tag string) int32 {
	return r.number(&protocol.Call{Call: &protocol.Call_StateWatch{StateWatch: &protocol.StateWatch{Task: task, Tag: tag}}})
}
