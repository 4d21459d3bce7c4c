package link

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
)

// Errnos of docs/abi.md.
const (
	errLimit   = -4
	errInvalid = -5
)

// MaxCall bounds a call: the largest possible request, and some room.
const MaxCall = 72 << 20

// check rejects what would end the stream, and with it everything that the process runs, if it were sent: a call that
// is too large, and a string that isn't UTF-8. It returns the errno for the call; 0 = it can be sent.
func check(c *protocol.Call, size int) int32 {
	switch {
	case size > MaxCall:
		return errLimit
	case !utf8.ValidString(textOf(c)):
		return errInvalid
	}
	return 0
}

// textOf returns the string in a call; at most one of its fields is one.
func textOf(c *protocol.Call) string {
	switch c := c.GetCall().(type) {
	case *protocol.Call_Info:
		return c.Info.GetKey()
	case *protocol.Call_Metric:
		return c.Metric.GetName()
	case *protocol.Call_StateSet:
		return c.StateSet.GetTag()
	case *protocol.Call_StateGet:
		return c.StateGet.GetTag()
	case *protocol.Call_StateWatch:
		return c.StateWatch.GetTag()
	case *protocol.Call_HttpDefer:
		return c.HttpDefer.GetEntry()
	}
	return ""
}

// maxText bounds each string of a failure; the host keeps less.
const maxText = 128 << 10

// clean makes a result safe to send: its strings become UTF-8, and an output over the limit is cut to just over
// the limit.
func clean(r *protocol.Result, task *protocol.Task) {
	switch o := r.GetOutcome().(type) {
	case *protocol.Result_Output:
		if most := task.GetOutputLimit(); most > 0 && int64(len(o.Output)) > most {
			o.Output = o.Output[:most+1]
		}
	case *protocol.Result_Failure:
		if f := o.Failure; f != nil {
			for _, s := range []*string{&f.Code, &f.Category, &f.Severity, &f.Message, &f.Context, &f.Stack} {
				*s = strings.ToValidUTF8((*s)[:min(len(*s), maxText)], "\uFFFD")
			}
		}
	}
}

// pour sends a large output in parts before the result, so that none of the frames is too large.
func (r *Run) pour(result *protocol.Result) {
	o, ok := result.GetOutcome().(*protocol.Result_Output)
	if !ok || len(o.Output) <= maxFrame {
		return
	}
	for part := range slices.Chunk(o.Output, maxFrame/2) {
		_ = r.Post(&protocol.Call{Call: &protocol.Call_Output{Output: &protocol.Output{Data: part}}})
	}
	o.Output = nil
}
