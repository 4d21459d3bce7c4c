package wire_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

// TestAppendWorkflow: what the client writes is what the host reads.
func TestAppendWorkflow(t *testing.T) {
	t.Parallel()
	definition := []byte(`{"name":"n","steps":[]}`)
	for _, start := range []jobhost.WorkflowStart{
		{Workflow: "order"},
		{ID: "wf-1", Workflow: "order", Input: []byte(` {"a": [1]} `), Labels: map[string]string{"größe": "x", "b": ""}, Retention: 36 * time.Hour},
		{ID: "wf-1", Input: bytes.Repeat([]byte{0xff}, 100)},
	} {
		along := definition
		if start.Workflow != "" {
			along = nil
		}
		got, raw, err := wire.NewDecoder(1 << 10).DecodeWorkflow(wire.AppendWorkflow(nil, &start, along))
		if diff := cmp.Diff(start, got); diff != "" || err != nil || !bytes.Equal(raw, along) {
			t.Errorf("%v %s\n%s", err, raw, diff)
		}
	}
	signal := jobhost.WorkflowSignal{ID: "s-1", Payload: []byte("\xff")}
	got, err := wire.NewDecoder(0).DecodeSignal(wire.AppendSignal(nil, &signal))
	if diff := cmp.Diff(signal, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	reason, err := wire.NewDecoder(0).DecodeCancel(wire.AppendCancel(nil, `say "no"`))
	if err != nil || reason != `say "no"` {
		t.Errorf("got %q, %v", reason, err)
	}
	step, err := wire.NewDecoder(0).DecodeRetry(wire.AppendRetry(nil, "pay"))
	if err != nil || step != "pay" {
		t.Errorf("got %q, %v", step, err)
	}
}

// TestDecodeInput: JSON is taken as it is, text without its quotes.
func TestDecodeInput(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"input":{"a": 1}}`: `{"a": 1}`, `{"input":"text"}`: `"text"`, `{"input":null}`: `null`,
		`{"input_text":"text"}`: `text`, `{"input_base64":"//4="}`: "\xff\xfe", `{}`: ``,
	} {
		start, _, err := wire.NewDecoder(100).DecodeWorkflow([]byte(body))
		if err != nil || string(start.Input) != want {
			t.Errorf("%s: got %q, %v", body, start.Input, err)
		}
	}
}

func TestDecodeWorkflowRefuses(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 70) + strings.Repeat("]", 70)
	for body, want := range map[string]string{
		`{"workflow":1}`:                               "workflow is a number, not a string",
		`{"definition":"order"}`:                       "definition is a string, not an object",
		`{"definition":{"a":1,"a":2}}`:                 "duplicate",
		`{"input":1,"input_text":"a"}`:                 "input and input_text are both set",
		`{"input_base64":"YQ==","input":1}`:            "input_base64 and input are both set",
		`{"input":` + deep + `}`:                       "nested more than 64 deep",
		`{"wrokflow":"a"}`:                             `unknown member "wrokflow"`,
		`{"input_base64":"YQ"}`:                        "not base64",
		`{"retention":"1"}`:                            "retention",
		`{"workflow":"a"} {}`:                          "more after the end",
		`{"input":"` + strings.Repeat("x", 200):        "invalid JSON",
		`{"input":"` + strings.Repeat("x", 200) + `"}`: "the input of 202 bytes is larger than 100",
	} {
		_, _, err := wire.NewDecoder(100).DecodeWorkflow([]byte(body))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: got %v, want %q", body, err, want)
		}
	}
	for body, want := range map[string]string{`{"payload":1,"payload_text":"a"}`: "both set", `{"name":"a"}`: "unknown member"} {
		if _, err := wire.NewDecoder(100).DecodeSignal([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", body, err)
		}
	}
	if _, err := wire.NewDecoder(0).DecodeRetry([]byte(`{"stp":"a"}`)); jobhost.HintOf(err) != "did you mean step?" {
		t.Errorf("got %v", err)
	}
}

func FuzzDecodeWorkflow(f *testing.F) {
	f.Add([]byte(`{"id":"wf-1","workflow":"order","input":{"n":[1]},"retention":"1m","labels":{"a":"b"}}`))
	f.Add([]byte(`{"definition":{"name":"a","steps":[]},"input_base64":"//4="}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		start, definition, err := wire.NewDecoder(1 << 10).DecodeWorkflow(body)
		if err != nil {
			if code := jobhost.CodeOf(err); code != jobhost.CodeInvalid && code != jobhost.CodeTooLarge {
				t.Errorf("the error is %v", err)
			}
			return
		}
		again, raw, err := wire.NewDecoder(1 << 10).DecodeWorkflow(wire.AppendWorkflow(nil, &start, definition))
		if err != nil || again.ID != start.ID || !bytes.Equal(again.Input, start.Input) || !bytes.Equal(raw, definition) {
			t.Errorf("%+v became %+v, %v", start, again, err)
		}
	})
}
