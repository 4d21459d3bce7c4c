package wire_test

import (
	"reflect"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

func TestState(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		state jobhost.TaskState
		want  string
	}{
		{"least", jobhost.TaskState{}, `{"status":0}`},
		{"below 0", jobhost.TaskState{Status: -2147483648}, `{"status":-2147483648}`},
		{
			"all",
			jobhost.TaskState{Status: jobhost.StatusFinished, Message: "<ä>\n", EventID: "e", SchemaVersion: 3, Payload: []byte(`{"a": "<"}`)},
			`{"status":2147483647,"message":"<ä>\n","event_id":"e","schema_version":3,"payload":{"a": "<"}}`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			body := wire.AppendState(nil, &test.state)
			if string(body) != test.want {
				t.Errorf("got %s, want %s", body, test.want)
			}
			got, err := wire.NewDecoder(0).DecodeState(body)
			if err != nil || !reflect.DeepEqual(got, test.state) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// FuzzState wants what can be read and set to be the same after another way over the wire.
func FuzzState(f *testing.F) {
	for _, body := range []string{
		`{"status":0}`, `{"status":-1,"message":"\u0041\n","payload":{"a":[1,{"b":"\""}]},"event_id":"e","schema_version":2}`,
		`{"status":1,"status":1}`, `{"status":1}{}`, `{"status":1e9}`, `{"status":1,"payload":{"a":"\ud800"}}`, "\xef\xbb\xbf{}", `{"status":1,"payload":null}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		first, err := wire.NewDecoder(0).DecodeState(body)
		if err != nil {
			if jobhost.CodeOf(err) != jobhost.CodeInvalid {
				t.Errorf("got %v", err)
			}
			return
		}
		set := first
		set.Tag = "a"
		if set.Check() != nil {
			return
		}
		again, err := wire.NewDecoder(0).DecodeState(wire.AppendState(nil, &first))
		if err != nil || !reflect.DeepEqual(first, again) {
			t.Errorf("%q is %+v and then %+v, %v", body, first, again, err)
		}
	})
}

// FuzzCleanup wants every body to be read or refused.
func FuzzCleanup(f *testing.F) {
	for _, body := range []string{`{"tombstone_age":"30d","delete_age":"90d","dry_run":true}`, `{}`, `{"dry_run":1}`, `{"dry_run":tru`, `{"delete_age":"1"}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := wire.NewDecoder(0).DecodeCleanup(body); err != nil && jobhost.CodeOf(err) != jobhost.CodeInvalid {
			t.Errorf("got %v", err)
		}
	})
}
