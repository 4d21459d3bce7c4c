package wire_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

// TestAppendFiber: what the client writes is what the host reads.
func TestAppendFiber(t *testing.T) {
	t.Parallel()
	for _, spec := range []jobhost.FiberSpec{
		{ID: "a", Worker: "w"},
		{ID: "a", Worker: "w", Entry: "run", Init: []byte("text \"quoted\"\n"), Labels: map[string]string{"größe": "x", "b": ""}},
		{ID: "a", Worker: "w", Init: bytes.Repeat([]byte{0xff}, 100), Restart: jobhost.RestartPolicy{When: jobhost.RestartAlways}},
		{ID: "a", Worker: "w", Restart: jobhost.RestartPolicy{
			When: jobhost.RestartOnFailure, Initial: jobhost.Duration(1500 * time.Microsecond), Max: jobhost.Duration(time.Hour), Intensity: 7, Within: jobhost.Duration(36 * time.Hour),
		}},
	} {
		got, err := wire.NewDecoder(0).DecodeFiber(wire.AppendFiber(nil, &spec))
		if diff := cmp.Diff(spec, got); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
	}
}

// TestFiberValues: results and outputs are text where that is possible, and the same
// afterwards.
func TestFiberValues(t *testing.T) {
	t.Parallel()
	for _, data := range []string{"", "text", "\xff\x00"} {
		f := wire.NewFiber(jobhost.Fiber{ID: "a", Status: jobhost.FiberCompleted, Result: []byte(data)})
		if got := f.Value(); string(got.Result) != data || got.ID != "a" {
			t.Errorf("%q: got %+v", data, got)
		}
		o := wire.NewFiberOutput(jobhost.FiberOutput{Seq: 3, Data: []byte(data)})
		if got := o.Value(); string(got.Data) != data || got.Seq != 3 {
			t.Errorf("%q: got %+v", data, got)
		}
	}
	if f := wire.NewFiber(jobhost.Fiber{Status: jobhost.FiberRunning}); f.Text != nil || f.Value().Result != nil {
		t.Errorf("a fiber that runs has the result %v", f.Text)
	}
}

func FuzzDecodeFiber(f *testing.F) {
	f.Add([]byte(`{"id":"a","worker":"w","init":{"n":[1]},"restart":{"when":"always","max":"1m"},"labels":{"a":"b"}}`))
	f.Add([]byte(`{"id":"a","init_base64":"//4="}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		spec, err := wire.NewDecoder(0).DecodeFiber(body)
		if err != nil {
			if jobhost.CodeOf(err) != jobhost.CodeInvalid {
				t.Errorf("the error is %v", err)
			}
			return
		}
		again, err := wire.NewDecoder(0).DecodeFiber(wire.AppendFiber(nil, &spec))
		if err != nil || again.ID != spec.ID || !bytes.Equal(again.Init, spec.Init) {
			t.Errorf("%+v became %+v, %v", spec, again, err)
		}
	})
}
