package jobhost_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

// wireEvent is an event as encoding/json reads it, except for the field names.
type wireEvent struct {
	State struct {
		Job       string          `json:"job"`
		Task      int             `json:"task"`
		Tag       string          `json:"tag"`
		Status    int32           `json:"status"`
		Message   string          `json:"message"`
		Timestamp time.Time       `json:"timestamp"`
		Version   int64           `json:"version"`
		Payload   json.RawMessage `json:"payload"`
	} `json:"state"`
	Replay   bool `json:"replay"`
	Sentinel bool `json:"sentinel"`
}

func (e *wireEvent) event() jobhost.StateEvent {
	s := &e.State
	return jobhost.StateEvent{
		State: jobhost.State{
			Job: s.Job, Task: s.Task, Tag: s.Tag, Status: s.Status, Message: s.Message, Payload: s.Payload, Time: s.Timestamp, Version: s.Version,
		},
		Replay: e.Replay, Sentinel: e.Sentinel,
	}
}

func TestReadEvent(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"state":{"job":"j","task":3,"tag":"ingest","status":-2147483648,"message":"half","timestamp":"2026-11-22T09:00:00.123Z","version":2,"event_id":"e","payload":{"rows":[1,{"a":"}\"]"}]},"schema_version":1},"replay":true}`,
		`{"state":{"job":"","task":0,"tag":"","status":0,"version":0},"replay":true,"sentinel":true,"cursor":"c-1"}`,
		`{"state":{"message":"\"\\\/\b\f\n\r\t\u0041\u00e4\ud83d\udfe2\ud83dx ä🟢"}}`,
		" { \"news\" : [ { } , \"}\" ] , \"state\" : { \"status\" : 7 ,\n\"payload\" : { \"a\" : 1 } } , \"replay\" : false } ",
		`{}`,
	} {
		var want wireEvent
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		got, ok := jobhost.ReadEvent([]byte(text))
		if diff := cmp.Diff(want.event(), got); diff != "" || !ok {
			t.Errorf("%s: %v %s", text, ok, diff)
		}
	}
	for _, text := range []string{
		"", "x", "{", `{"state"`, `{"state":`, `{"state":}`, `{"state":{}`, `{"state":{}}x`, `{"state":{"task":x}}`, `{"state":{"job":1}}`,
		`{"state":{"job":"\x"}}`, `{"state":{"job":"\u12"}}`, `{"state":{"job":"\`, `{"state":{"timestamp":"now"}}`, `{"state":{"payload":}}`, `{"a":1,}`,
	} {
		if e, ok := jobhost.ReadEvent([]byte(text)); ok {
			t.Errorf("%s was read as %+v", text, e)
		}
	}
}

// FuzzReadEvent: what encoding/json writes is read back unchanged, and nothing
// crashes the reader.
func FuzzReadEvent(f *testing.F) {
	f.Add("j", "half", []byte(`{"a":1}`), int32(-1), int64(7), true)
	f.Add("<&>\u2028", "\x00\"\\\xff🟢", []byte(`{"state":{"job":"\ud83d`), int32(0), int64(0), false)
	f.Fuzz(func(t *testing.T, job, message string, payload []byte, status int32, version int64, replay bool) {
		_, _ = jobhost.ReadEvent(payload)
		want := wireEvent{Replay: replay}
		want.State.Job, want.State.Message, want.State.Status, want.State.Version = job, message, status, version
		if json.Valid(payload) {
			want.State.Payload = payload
		} else {
			want.State.Payload = json.RawMessage("{}")
		}
		text, err := json.Marshal(&want)
		if err != nil {
			t.Fatal(err)
		}
		var read wireEvent
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatal(err)
		}
		if got, ok := jobhost.ReadEvent(text); !ok || !cmp.Equal(read.event(), got) {
			t.Errorf("%s was read as %+v, %v", text, got, ok)
		}
	})
}
