package wire_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

const maxPayload = 1 << 20

func TestDecode(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, body string
		want       jobhost.Spec
	}{
		{"least", `{"worker":"w"}`, jobhost.Spec{Worker: "w"}},
		{"space", " {\n\t\"worker\" : \"w\" }\r\n ", jobhost.Spec{Worker: "w"}},
		{"text", `{"worker":"w","payload":"a\n\u00e9\ud83d\ude00\u0000"}`, jobhost.Spec{Worker: "w", Payload: []byte("a\né😀\x00")}},
		{"number", `{"payload":12.50,"worker":"w"}`, jobhost.Spec{Worker: "w", Payload: []byte("12.50"), ContentType: "application/json"}},
		{"null", `{"worker":"w","payload":null}`, jobhost.Spec{Worker: "w", Payload: []byte("null"), ContentType: "application/json"}},
		{"object as it is", `{"worker":"w","payload":{"b": [1 ,2], "a":"\u0061"}}`, jobhost.Spec{Worker: "w", Payload: []byte(`{"b": [1 ,2], "a":"\u0061"}`), ContentType: "application/json"}},
		{"own type", `{"worker":"w","content_type":"text/x","payload":[]}`, jobhost.Spec{Worker: "w", Payload: []byte("[]"), ContentType: "text/x"}},
		{"base64", `{"worker":"w","payload_base64":"//4AYQ=="}`, jobhost.Spec{Worker: "w", Payload: []byte("\xff\xfe\x00a")}},
		{"callback", `{"worker":"w","callback":{"worker":"x"}}`, jobhost.Spec{Worker: "w", Callback: jobhost.Callback{Worker: "x"}}},
		{"callback to a URL", `{"worker":"w","callback":{"url":"https://example.com/?a=\u0026"}}`, jobhost.Spec{Worker: "w", Callback: jobhost.Callback{URL: "https://example.com/?a=&"}}},
		{"escaped name", `{"w\u006frker":"w"}`, jobhost.Spec{Worker: "w"}},
		{
			"everything",
			`{"worker":"w","id":"i","entry":"e","priority":"low","delay":"1m30s","tasks":3,"max_attempts":4,"timeout":"2d","retention":"7d","labels":{"a":"b","c":""}}`,
			jobhost.Spec{
				Worker: "w", ID: "i", Entry: "e", Priority: jobhost.Low, Delay: 90 * time.Second, Tasks: 3, MaxAttempts: 4,
				Timeout: 48 * time.Hour, Retention: 7 * 24 * time.Hour, Labels: map[string]string{"a": "b", "c": ""},
			},
		},
		{"time", `{"worker":"w","run_at":"2030-01-02T03:04:05.5Z"}`, jobhost.Spec{Worker: "w", RunAt: time.Date(2030, 1, 2, 3, 4, 5, 5e8, time.UTC)}},
		{"deep enough", `{"worker":"w","payload":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`, jobhost.Spec{
			Worker: "w", ContentType: "application/json", Payload: []byte(strings.Repeat("[", 63) + strings.Repeat("]", 63)),
		}},
	}
	d := wire.NewDecoder(maxPayload)
	for _, test := range tests {
		body := []byte(test.body)
		got, err := d.Decode(body)
		clear(body) // nothing of it may be kept
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %+v, %v; want %+v", test.name, got, err, test.want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, body, field, text string }{
		{"nothing", ``, "", "the body is empty"},
		{"space", ` `, "", "the body is empty"},
		{"cut off", `{"worker":"w"`, "", "at byte 13"},
		{"an array", `[]`, "", "the body is an array, not an object"},
		{"a string", `"worker"`, "", "not an object"},
		{"comment", `{"worker":"w" /* x */}`, "", "at byte 14"},
		{"trailing comma", `{"worker":"w",}`, "", "at byte 13"},
		{"single quotes", `{'worker':'w'}`, "", "at byte 1"},
		{"NaN", `{"tasks":NaN}`, "tasks", "at byte 9"},
		{"two documents", `{"worker":"w"}{"worker":"w"}`, "", "more after the end of the object at byte 14"},
		{"rest", `{"worker":"w"} x`, "", "more after the end"},
		{"byte order mark", "\xef\xbb\xbf{}", "", "byte order mark"},
		{"UTF-16", "{\x00\"\x00w\x00", "", "at byte 1"},
		{"unknown", `{"wroker":"w"}`, "wroker", `unknown member "wroker"`},
		{"other case", `{"WORKER":"w"}`, "WORKER", `unknown member "WORKER"`},
		{"twice", `{"worker":"a","worker":"b"}`, "worker", "duplicate"},
		{"twice, escaped", `{"worker":"a","w\u006frker":"b"}`, "worker", "duplicate"},
		{"twice inside", `{"payload":{"a":1,"a":2}}`, "payload.a", "duplicate"},
		{"invalid UTF-8", "{\"worker\":\"\xff\"}", "worker", "UTF-8"},
		{"invalid UTF-8 inside", "{\"payload\":[\"\xff\"]}", "payload.0", "UTF-8"},
		{"lone surrogate", `{"payload":"\ud800"}`, "payload", "at byte"},
		{"control character", "{\"payload\":\"a\nb\"}", "payload", "at byte"},
		{"too deep", `{"payload":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, "payload", "nested more than 64 deep at byte 74"},
		{"far too deep", `{"payload":` + strings.Repeat("[", 300_000), "payload" + strings.Repeat(".0", 36) + ".…", "depth"},
		{"brackets in text only", `{"payload":["` + strings.Repeat("[", 80) + `\"[", 1], "x":1}`, "x", "unknown member"},
		{"both payloads", `{"payload":"a","payload_base64":"YQ=="}`, "payload_base64", "both set"},
		{"both payloads, empty", `{"payload_base64":"","payload":""}`, "payload", "both set"},
		{"bad base64", `{"payload_base64":"a_-="}`, "payload_base64", "not base64"},
		{"loose base64", `{"payload_base64":"YR=="}`, "payload_base64", "not base64"},
		{"base64 number", `{"payload_base64":1}`, "payload_base64", "is a number, not a string"},
		{"worker null", `{"worker":null}`, "worker", "worker is null, not a string"},
		{"tasks text", `{"tasks":"1"}`, "tasks", "is a string, not a whole number"},
		{"tasks fraction", `{"tasks":1.5}`, "tasks", "not a whole number"},
		{"tasks exponent", `{"tasks":1e2}`, "tasks", "not a whole number"},
		{"tasks huge", `{"tasks":9223372036854775808}`, "tasks", "in range"},
		{"attempts huge", `{"max_attempts":1e400}`, "max_attempts", "not a whole number"},
		{"delay without unit", `{"delay":"5"}`, "delay", "not a duration"},
		{"delay number", `{"delay":5}`, "delay", "is a number, not a string"},
		{"delay overflow", `{"delay":"9223372036854775808ns"}`, "delay", "not a duration"},
		{"delay huge", `{"delay":"99999999999d"}`, "delay", "not a duration"},
		{"time without zone", `{"run_at":"2030-01-02T03:04:05"}`, "run_at", "RFC 3339"},
		{"time in year 10000", `{"run_at":"10000-01-02T03:04:05Z"}`, "run_at", "RFC 3339"},
		{"priority", `{"priority":"urgent"}`, "priority", "not a priority"},
		{"labels list", `{"labels":[]}`, "labels", "labels is an array, not an object"},
		{"label number", `{"labels":{"a":1}}`, "labels", "not a string"},
		{"label twice", `{"labels":{"a":"1","a":"2"}}`, "labels.a", "duplicate"},
		{"many labels", `{"labels":{` + manyLabels(17) + `}}`, "labels", "more than 16"},
	}
	d := wire.NewDecoder(maxPayload)
	for _, test := range tests {
		_, err := d.Decode([]byte(test.body))
		e, ok := err.(*jobhost.Error) //nolint:errorlint // the decoder returns it as it is
		if !ok || e.Code != jobhost.CodeInvalid || e.Field != test.field || !strings.Contains(e.Message, test.text) || len(e.Message) > 400 {
			t.Errorf("%s: got %#v, want field %q and %q", test.name, err, test.field, test.text)
		}
	}
	// The decoder is fine after all of that.
	if got, err := d.Decode([]byte(`{"worker":"w"}`)); err != nil || got.Worker != "w" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func manyLabels(n int) string {
	labels := make([]string, n)
	for i := range labels {
		labels[i] = `"` + string(rune('a'+i)) + `":""`
	}
	return strings.Join(labels, ",")
}

func TestDecodeHints(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"wroker":1}`:         "did you mean worker?",
		`{"MaxAttempts":1}`:    "did you mean max_attempts?",
		`{"payload-base64":1}`: "did you mean payload_base64?",
		`{"zzzzzz":1}`:         "use worker, id, payload,",
		`{"delay":"5"}`:        "with a unit",
	} {
		_, err := wire.NewDecoder(maxPayload).Decode([]byte(body))
		if hint := jobhost.HintOf(err); !strings.Contains(hint, want) {
			t.Errorf("%s: got hint %q, want %q", body, hint, want)
		}
	}
}

func TestDecodeTooLarge(t *testing.T) {
	t.Parallel()
	d := wire.NewDecoder(4)
	for _, body := range []string{`{"payload":"12345"}`, `{"payload":[1,2]}`, `{"payload_base64":"MTIzNDU="}`} {
		if _, err := d.Decode([]byte(body)); jobhost.CodeOf(err) != jobhost.CodeTooLarge {
			t.Errorf("%s: got %v", body, err)
		}
	}
	if got, err := d.Decode([]byte(`{"payload":"\u0031234"}`)); err != nil || string(got.Payload) != "1234" {
		t.Errorf("got %q, %v", got.Payload, err)
	}
}

func TestAppendSubmit(t *testing.T) {
	t.Parallel()
	payloads := map[string][]byte{
		"text": []byte(`say "hi"` + "\n<b>\u2028\x00\x7f"), "bytes": {0xff, 0}, "controls": bytes.Repeat([]byte{1}, 1000), "brackets": []byte(`{"a":1}`),
	}
	for name, payload := range payloads {
		want := jobhost.Spec{
			ID: "i", Worker: "w", Payload: payload, ContentType: "text/plain", Entry: "é\"", Priority: jobhost.Critical,
			RunAt: time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC), Delay: 36*time.Hour + time.Nanosecond, Tasks: 10_000,
			MaxAttempts: 1000, Timeout: 24 * time.Hour, Retention: time.Minute, Labels: map[string]string{"a": "1", "": "\"", "ü": ""},
		}
		body := wire.AppendSubmit(nil, &want)
		got, err := wire.NewDecoder(maxPayload).Decode(body)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %s\ngot  %+v, %v\nwant %+v", name, body, got, err, want)
		}
		if limit := len(payload)*4/3 + 300; len(body) > limit {
			t.Errorf("%s: the body has %d bytes, more than base64 would", name, len(body))
		}
	}
}

// FuzzDecode checks that whatever is taken says what it means: encoding it
// gives a body that decodes to the same.
func FuzzDecode(f *testing.F) {
	for _, body := range []string{
		`{"worker":"w"}`, `{"worker":"w","payload":{"a":[1,null,"\u00e9"]},"labels":{"a":"b"}}`, `{"payload_base64":"//4="}`,
		`{"id":"i","entry":"e","priority":"low","delay":"1m","run_at":"2030-01-01T00:00:00+01:00","tasks":1,"max_attempts":2,"timeout":"3s"}`,
		`{"worker":"a","worker":"b"}`, "\xef\xbb\xbf{}", `{} {}`, `[[[[`, `{"payload":"\ud800"}`, "",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		spec, err := wire.NewDecoder(maxPayload).Decode(body)
		if err != nil {
			e, ok := err.(*jobhost.Error) //nolint:errorlint // the decoder returns it as it is
			if !ok || e.Message == "" || !utf8.ValidString(e.Message) || !utf8.ValidString(e.Field) || len(e.Message) > 400 {
				t.Fatalf("got error %#v", err)
			}
			return
		}
		again, err := wire.NewDecoder(maxPayload).Decode(wire.AppendSubmit(nil, &spec))
		if err != nil {
			t.Fatalf("%s: %v", wire.AppendSubmit(nil, &spec), err)
		}
		if !spec.RunAt.Equal(again.RunAt) {
			t.Fatalf("got time %v, want %v", again.RunAt, spec.RunAt)
		}
		spec.RunAt, again.RunAt = time.Time{}, time.Time{}
		if len(spec.Payload) == 0 {
			spec.Payload, again.Payload = nil, nil
		}
		if len(spec.Labels) == 0 {
			spec.Labels, again.Labels = nil, nil
		}
		if !reflect.DeepEqual(spec, again) {
			t.Fatalf("got %+v, want %+v", again, spec)
		}
	})
}
