package guesttest

import (
	"fmt"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// Stream is what comes of a handle with many messages.
type Stream struct {
	Messages []Reply // by their time
	End      int32   // the errno after the last; 0 = it never ends
}

// stream is a Stream that is read.
type stream struct {
	Stream
}

// when is when there is something to read.
func (s *stream) when() time.Duration {
	switch {
	case len(s.Messages) > 0:
		return s.Messages[0].After
	case s.End != 0:
		return 0
	}
	return never
}

// read copies what is next of the first message.
func (s *stream) read(m api.Memory, buf, room uint64) int32 {
	if len(s.Messages) == 0 {
		return s.End
	}
	text := s.Messages[0].Text
	if uint32(room) == 0 {
		return int32(len(text))
	}
	n := min(len(text), int(uint32(room)), 1<<10)
	fill(m, buf, uint64(n), text[:n])
	if s.Messages[0].Text = text[n:]; n == len(text) {
		s.Messages = s.Messages[1:]
	}
	return int32(n)
}

// opensStream makes a handle of a stream that the test has named.
func (at *Attempt) opensStream(name string) int32 {
	s, ok := at.Streams[name]
	if !ok {
		return -2
	}
	own := &stream{Stream: Stream{Messages: append([]Reply(nil), s.Messages...), End: s.End}}
	return at.Ops.opens(&pending{stream: own})
}

// defineStates defines the calls about states and messages.
func defineStates(define func(name string, params, results []api.ValueType, call hostCall)) {
	type types = []api.ValueType
	define("state_set", types{i32, i32, i32, i32, i32, i32, i32}, types{i32}, func(at *Attempt, m api.Memory, s []uint64) {
		at.Sets = append(at.Sets, fmt.Sprint(text(m, s[0], s[1]), " ", int32(s[2]), " ", text(m, s[3], s[4]), " ", text(m, s[5], s[6])))
		s[0] = api.EncodeI32(at.Errno)
	})
	define("state_get", types{i32, i32, i32, i32, i32}, types{i32}, func(at *Attempt, m api.Memory, s []uint64) {
		list, ok := at.States[fmt.Sprint(int32(s[0]), " ", text(m, s[1], s[2]))]
		if !ok {
			s[0] = api.EncodeI32(-2)
			return
		}
		now := Reply{}
		for _, r := range list {
			if r.After <= at.Ops.Elapsed {
				now = r
			}
		}
		s[0] = fill(m, s[3], s[4], now.Text)
	})
	define("state_watch", types{i32, i32, i32}, types{i32}, func(at *Attempt, m api.Memory, s []uint64) {
		s[0] = api.EncodeI32(at.opensStream(fmt.Sprint(int32(s[0]), " ", text(m, s[1], s[2]))))
	})
	define("recv", nil, types{i32}, func(at *Attempt, _ api.Memory, s []uint64) {
		if at.Ops.inbox == 0 {
			at.Ops.inbox = at.opensStream("recv")
		}
		s[0] = api.EncodeI32(at.Ops.inbox)
	})
}
