package netproxy_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/netproxy"
)

var (
	breakerPolicy = jobhost.BreakerPolicy{Failures: 3, Timeout: time.Minute, Probes: 1}
	fastRate      = jobhost.Rate{Count: 100_000, Per: time.Second}
	alike         = cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(netproxy.Error{})}
)

// Requests, responses and errors survive a round trip through JSON.
func TestJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.SliceOfN(rapid.Byte(), 0, 20)
		spec := netproxy.RequestSpec{
			ID: "id", Method: rapid.SampledFrom([]string{"GET", "POST"}).Draw(t, "method"), URL: "https://a.example/x?y=z", Header: http.Header{"X": {"1", "é\t"}},
			HostHeader: http.Header{"Idempotency-Key": {"k"}}, Body: body.Draw(t, "body"), Timeout: time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "timeout")),
			MaxResponseBytes: rapid.Int64Range(0, 1e12).Draw(t, "max"), RaiseErrors: rapid.Bool().Draw(t, "raise"),
		}
		if n := rapid.IntRange(-1, 5).Draw(t, "redirects"); n >= 0 {
			spec.MaxRedirects = &n
		}
		r, err := netproxy.NewRequest(spec)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var again netproxy.Request
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if diff := cmp.Diff(spec, again.Spec(), alike); diff != "" {
			t.Fatalf("%s:\n%s", text, diff)
		}
		resp := &netproxy.Response{
			Status: 200, Header: http.Header{"X": {"y"}}, Body: body.Draw(t, "body"), Duration: 1234567, RequestID: "id/2", Method: "GET", URL: "https://a.example/",
			Redirects: []string{"https://b.example/"}, Args: body.Draw(t, "args"),
		}
		e := &netproxy.Error{
			Kind: netproxy.KindHTTP, Code: netproxy.CodeServerError, Message: "m", RequestID: "id", Method: "GET", URL: "u", Redirects: []string{"v"}, Duration: 1, Response: resp,
			Args: body.Draw(t, "args"),
		}
		if text, err = json.Marshal(e); err != nil {
			t.Fatal(err)
		}
		var e2 netproxy.Error
		if err := json.Unmarshal(text, &e2); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if diff := cmp.Diff(e, &e2, alike); diff != "" {
			t.Fatalf("%s:\n%s", text, diff)
		}
	})
}

func TestReadableJSON(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(&netproxy.Response{Status: 200, Body: []byte("text"), Args: []byte{0xff}, RequestID: "id", Method: "GET", URL: "u", Duration: time.Second})
	const want = `{"status":200,"body":"text","duration":"1s","request_id":"id","method":"GET","url":"u","args":{"base64":"/w=="}}`
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v", text, err)
	}
	for _, bad := range []string{`{"status":200,"body":5}`, `{"status":99}`, `{}`, `[]`, `{"status":200,"body":{"base64":"?"}}`} {
		if err := json.Unmarshal([]byte(bad), &netproxy.Response{}); err == nil {
			t.Errorf("%s is a response", bad)
		}
	}
	for _, bad := range []string{`{"kind":"x","code":"y"}`, `{"kind":"http"}`, `5`} {
		if err := json.Unmarshal([]byte(bad), &netproxy.Error{}); err == nil {
			t.Errorf("%s is an error", bad)
		}
	}
	for _, bad := range []string{`{"url":"file:///x"}`, `{"url":"http://a.example/","method":"TRACE"}`, `{"url":5}`, `{"url":"http://a.example/","headers":{"a b":["x"]}}`} {
		if err := json.Unmarshal([]byte(bad), &netproxy.Request{}); err == nil {
			t.Errorf("%s is a request", bad)
		}
	}
}

// FuzzRequest: what is read as a request is one that could have been made, and
// reads the same again.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		`{"url":"https://a.example/x","method":"POST","headers":{"A":["b"]},"body":"c","timeout":"5s","max_redirects":0}`,
		`{"id":"x","url":"http://[::1]:80/%7e","body":{"base64":"AA=="}}`, `{"url":"http://a\r\n.example"}`, `null`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var r netproxy.Request
		if json.Unmarshal(text, &r) != nil || r.URL() == "" {
			return
		}
		again, err := netproxy.NewRequest(r.Spec())
		if err != nil {
			t.Fatalf("%s was read, and can't be made: %v", text, err)
		}
		if diff := cmp.Diff(r.Spec(), again.Spec(), alike); diff != "" {
			t.Fatal(diff)
		}
		out, err := json.Marshal(&r)
		var third netproxy.Request
		if err = errors.Join(err, json.Unmarshal(out, &third)); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		if diff := cmp.Diff(r.Spec(), third.Spec(), alike); diff != "" {
			t.Fatal(diff)
		}
	})
}

// FuzzAnswer: what is read as a response or an error reads the same again.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"kind":"http","code":"server_error","duration":"1ms","response":{"status":500,"body":"x"}}`))
	f.Add([]byte(`{"kind":"redirect","code":"too_many","redirects":["a","b"],"args":{"base64":"/w=="}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var e, again netproxy.Error
		if json.Unmarshal(text, &e) != nil || e.Kind == "" {
			return
		}
		out, err := json.Marshal(&e)
		if err = errors.Join(err, json.Unmarshal(out, &again)); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		if diff := cmp.Diff(&e, &again, alike); diff != "" {
			t.Fatalf("%s:\n%s", out, diff)
		}
	})
}
