package statetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/state"
)

// testVersions counts the changes of each (task, tag) from 1, whatever the writer says.
func testVersions(s store) {
	src := s.follow(plain, 12)
	// Keys that a careless store could take for one another.
	keys := []memoryKey{{0, "a"}, {1, "a"}, {0, "A"}, {0, "b"}, {1, "1-a"}, {11, "a"}, {1, "0"}, {10, "0"}, {0, "a.b"}, {0, "a_b"}, {0, "_a"}}
	for round := int64(1); round <= 3; round++ {
		for i, k := range keys {
			st := of(plain, k.task, k.tag, int32(i))
			st.Version, st.Timestamp = 77, time.Unix(1, 0)
			got := src.set(st)
			if got.Version != round || got.JobID != plain.ID || got.TaskID != k.task || got.Tag != k.tag || got.Status != int32(i) {
				s.t.Fatalf("write %d of %v returned %+v", round, k, got)
			}
			wantState(s.t, "the feed", src.get(k.task, k.tag), got)
		}
	}
	again := s.follow(plain, 0)
	for _, k := range keys {
		wantState(s.t, "opened again", again.get(k.task, k.tag), src.get(k.task, k.tag))
	}
	if again.count() != len(keys) {
		s.t.Errorf("there are %d states, want %d", again.count(), len(keys))
	}
}

// testVersionsAtOnce has 100 write one (task, tag): each version is given once.
func testVersionsAtOnce(s store) {
	const writes = 100
	sources := []source{s.follow(plain, 1), s.follow(plain, 1)}
	versions := make([]int, writes+1)
	var mu sync.Mutex // protects versions
	var wg sync.WaitGroup
	for i := range writes {
		wg.Go(func() {
			got, err := sources[i%2].write(of(plain, 0, "a", int32(i)))
			switch {
			case err != nil:
				s.t.Error(err)
			case got.Status != int32(i) || got.Version < 1 || got.Version > writes:
				s.t.Errorf("the write of status %d returned %+v", i, got)
			default:
				mu.Lock()
				versions[got.Version]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for v, n := range versions[1:] {
		if n != 1 {
			s.t.Errorf("version %d was given %d times", v+1, n)
		}
	}
	for _, src := range append(sources, s.follow(plain, 0)) {
		src.wantVersion(0, "a", writes)
	}
}

// testEventIDs sends writes again: with the EventID of the last one nothing changes.
func testEventIDs(s store) {
	src := s.follow(plain, 2)
	write := func(task int, tag, event string, status int32) state.State {
		s.t.Helper()
		st := of(plain, task, tag, status)
		st.EventID = event
		return src.set(st)
	}
	first := write(0, "a", "e1", 1)
	if first.Version != 1 || first.EventID != "e1" {
		s.t.Fatalf("the first write is %+v", first)
	}
	wantState(s.t, "sent again", write(0, "a", "e1", 1), first)
	wantState(s.t, "sent again with another status", write(0, "a", "e1", 2), first)
	for _, k := range []memoryKey{{1, "a"}, {0, "b"}} {
		if other := write(k.task, k.tag, "e1", 3); other.Version != 1 || other.Status != 3 {
			s.t.Fatalf("%v is another (task, tag): %+v", k, other)
		}
	}
	if second := write(0, "a", "e2", 2); second.Version != 2 {
		s.t.Fatalf("the second write is %+v", second)
	}
	if third := write(0, "a", "e1", 3); third.Version != 3 || third.Status != 3 {
		s.t.Fatalf("e1 is not the last write any more: %+v", third)
	}
	again := s.follow(plain, 0)
	wantState(s.t, "sent again elsewhere", again.set(withEvent(of(plain, 0, "a", 9), "e1")), src.get(0, "a"))

	given := map[string]bool{}
	for i := range 20 {
		id := write(0, "c", "", int32(i)).EventID
		if id == "" || given[id] || len(id) > jobhost.MaxIDBytes {
			s.t.Fatalf("the store gave the event id %q", id)
		}
		given[id] = true
	}
}

func withEvent(st state.State, event string) state.State {
	st.EventID = event
	return st
}

// testEventIDsAtOnce sends one write many times at once.
func testEventIDsAtOnce(s store) {
	sources := []source{s.follow(plain, 1), s.follow(plain, 1)}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			got, err := sources[i%2].write(withEvent(of(plain, 0, "a", int32(i)), "same"))
			if err != nil || got.Version != 1 {
				s.t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	wg.Wait()
	s.follow(plain, 0).wantVersion(0, "a", 1)
}

// testTimes has the store give the times: what is written after another write
// has returned is not older, and a time is the same wherever it is read.
func testTimes(s store) {
	const skew = time.Hour // of a server's clock
	src := s.follow(plain, 2)
	began := time.Now()
	var last time.Time
	for i := range 20 {
		st := of(plain, i%2, fmt.Sprint("tag-", i%3), 1)
		st.Timestamp = time.Unix(1, 0)
		got := src.set(st)
		if got.Timestamp.Before(last) {
			s.t.Fatalf("write %d is of %v, the one before of %v", i, got.Timestamp, last)
		}
		last = got.Timestamp
		wantState(s.t, "the feed", src.get(got.TaskID, got.Tag), got)
	}
	if last.Before(began.Add(-skew)) || last.After(time.Now().Add(skew)) {
		s.t.Fatalf("the time of the store is %v", last)
	}
	again := s.follow(plain, 0)
	for k, st := range src.all() {
		wantState(s.t, "opened again", again.get(k.task, k.tag), st)
	}
}

// testTexts keeps what is odd but legal.
func testTexts(s store) {
	src := s.follow(plain, 1)
	texts := []state.State{
		{Tag: "0"},
		{Tag: "_run"},
		{Tag: "_0"},
		{Tag: "a..b"},
		{Tag: "a-"},
		{Tag: "UPPER"},
		{Tag: strings.Repeat("t", jobhost.MaxTagBytes)},
		{Tag: strings.Repeat("t", jobhost.MaxTagBytes-1)},
		{Tag: "emoji", Message: "🟢 ⚫ 🔴 🟡 👩‍👩‍👧‍👦 e\u0301"},
		{Tag: "lines", Message: "one\ntwo\r\n\tthree\n"},
		{Tag: "spaces", Message: "  not trimmed  "},
		{Tag: "quotes", Message: `'"\%_;-- $1 ? ` + "`"},
		{Tag: "controls", Message: "\x01\x1b[31m\x7f\u2028\ufeff"},
		{Tag: "long", Message: strings.Repeat("m", jobhost.MaxStateMessageBytes)},
		{Tag: "wide", Message: strings.Repeat("🔴", jobhost.MaxStateMessageBytes/4)},
		{Tag: "event", EventID: strings.Repeat("e", jobhost.MaxIDBytes)},
		{Tag: "schema", SchemaVersion: 1<<31 - 1},
		{Tag: "lowest", Status: -1 << 31},
		{Tag: "highest", Status: 1<<31 - 1},
	}
	for _, st := range texts {
		if err := st.Check(); err != nil {
			s.t.Fatalf("%.40q is not legal: %v", st.Tag, err)
		}
		st.JobID, st.SchemaVersion = plain.ID, max(st.SchemaVersion, 1)
		got := src.set(st)
		st.Timestamp, st.Version = got.Timestamp, 1
		if st.EventID == "" {
			st.EventID = got.EventID
		}
		wantState(s.t, st.Tag, got, st)
	}
	again := s.follow(plain, 0)
	if again.count() != len(texts) {
		s.t.Errorf("there are %d states, want %d", again.count(), len(texts))
	}
	for k, st := range src.all() {
		wantState(s.t, "opened again", again.get(k.task, k.tag), st)
	}
}

// keep writes payloads and sees that they come back.
func (s store) keep(payloads ...string) {
	s.t.Helper()
	src := s.follow(plain, 1)
	for i, p := range payloads {
		if !json.Valid([]byte(p)) && p != "" {
			s.t.Fatalf("%.40q is no JSON", p)
		}
		st := of(plain, 0, fmt.Sprint("tag-", i), 1)
		st.Payload, st.SchemaVersion = json.RawMessage(p), i+1
		got := src.set(st)
		st.Timestamp, st.Version, st.EventID = got.Timestamp, 1, got.EventID
		wantState(s.t, "written", got, st)
		wantState(s.t, "the feed", src.get(0, st.Tag), st)
	}
	again := s.follow(plain, 0)
	for k, st := range src.all() {
		wantState(s.t, "opened again", again.get(k.task, k.tag), st)
	}
	// What had one may have none later.
	src.set(of(plain, 0, "tag-0", 2))
	if got := s.follow(plain, 0).get(0, "tag-0").Payload; len(got) > 0 {
		s.t.Errorf("the payload %q was not taken away", got)
	}
}

func testPayloads(s store) {
	s.keep(`{"rows":1200,"ratio":0.5,"done":false,"next":null,"files":["a","b"],"of":{"deep":{"er":true}}}`,
		"", `{}`, `{"text":"🟢\n\"quoted\" \\ \u0000 <&>"}`, `{ "spaced" : [ 1 , 2 ] }`)
}

// testPayloadNumbers has numbers that no float64 holds.
func testPayloadNumbers(s store) {
	s.keep(`{"n":9007199254740993}`, `{"n":-9223372036854775808}`, `{"n":18446744073709551615}`, `{"n":0.1234567890123456789}`, `{"n":1e300}`, `{"n":1.0}`)
}

// testPayloadShapes has objects that are awkward where payloads are no text.
func testPayloadShapes(s store) {
	s.keep(`{"lists":[[1,[2,[]]],[]]}`, `{"":1}`, `{"__name__":1,"a.b":2,"a/b":3,"é 🟢":4}`, strings.Repeat(`{"a":`, 100)+`1`+strings.Repeat(`}`, 100))
}

// testLargePayload has the largest payload, in several states.
func testLargePayload(s store) {
	text := strings.Repeat("0123456789abcdef", jobhost.MaxStatePayloadBytes/16)
	large := `{"text":"` + text[:jobhost.MaxStatePayloadBytes-len(`{"text":""}`)] + `"}`
	s.keep(large, large, large)
}

// testManyTasks has a job of 1,000 tasks report.
func testManyTasks(s store) {
	const tasks, writers = 1000, 16
	src := s.follow(plain, tasks)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for task := w; task < tasks; task += writers {
				if got, err := src.write(of(plain, task, "a", int32(task))); err != nil || got.Version != 1 {
					s.t.Errorf("task %d: %+v, %v", task, got, err)
					return
				}
			}
		})
	}
	wg.Wait()
	again := s.follow(plain, 0)
	if again.Tasks() != tasks || again.count() != tasks {
		s.t.Fatalf("there are %d tasks and %d states, want %d", again.Tasks(), again.count(), tasks)
	}
	for task := range tasks {
		wantState(s.t, "opened again", again.get(task, "a"), src.get(task, "a"))
	}
	if info := s.infos()[plain.Key()]; info.Tasks != tasks || info.States != tasks {
		s.t.Errorf("listed as %+v", info)
	}
}
