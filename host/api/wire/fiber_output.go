package wire

import (
	"encoding/base64"
	"encoding/json"
	"iter"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/jobhost/jobhost"
)

// outputPiece is how much of an output becomes JSON at a time: a multiple of three, for base64.
const outputPiece = 12 << 10

// FiberOutputJSON yields the JSON of what [NewFiberOutput] returns in pieces. Of a large output, which
// many readers may be sent at once, each of them holds a piece only; the data is that of all.
func FiberOutputJSON(o jobhost.FiberOutput) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		head, text := strconv.AppendUint([]byte(`{"seq":`), o.Seq, 10), utf8.Valid(o.Data)
		head = o.Time.AppendFormat(append(head, `,"time":"`...), time.RFC3339Nano)
		if text {
			head = append(head, `","data":"`...)
		} else {
			head = append(head, `","data_base64":"`...)
		}
		if !yield(head) {
			return
		}
		for rest := o.Data; len(rest) > 0; {
			var part []byte
			if part, rest = cutOutput(rest, text); !yield(part) {
				return
			}
		}
		yield([]byte(`"}`))
	}
}

// cutOutput returns the JSON of the first piece of an output, without quotes, and what is behind it.
func cutOutput(data []byte, text bool) (part, rest []byte) {
	n := min(outputPiece, len(data))
	if !text {
		return base64.StdEncoding.AppendEncode(nil, data[:n]), data[n:]
	}
	for n < len(data) && !utf8.RuneStart(data[n]) {
		n--
	}
	quoted, _ := json.Marshal(string(data[:n])) // there is no string without a form
	return quoted[1 : len(quoted)-1], data[n:]
}
