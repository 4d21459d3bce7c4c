package hostcall_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

func TestParseRequest(t *testing.T) {
	t.Parallel()
	type header = map[string][]string
	for _, tt := range []struct {
		name, text string
		want       hostcall.HTTPRequest
	}{
		{"the first line alone", "GET https://a.example/", hostcall.HTTPRequest{Method: "GET", URL: "https://a.example/", Header: header{}}},
		{"with its end", "GET https://a.example/\n", hostcall.HTTPRequest{Method: "GET", URL: "https://a.example/", Header: header{}}},
		{
			"everything", "POST https://a.example/x?y z\nx-a: 1\nX-A:2 \nX-B:\n\nbody\n\nmore",
			hostcall.HTTPRequest{
				Method: "POST", URL: "https://a.example/x?y z", Header: header{"X-A": {"1", "2"}, "X-B": {""}}, Body: []byte("body\n\nmore"),
			},
		},
		{"lines as HTTP ends them", "GET http://a\r\na: b\r\n\r\nbody", hostcall.HTTPRequest{Method: "GET", URL: "http://a", Header: header{"A": {"b"}}, Body: []byte("body")}},
		{"a header without end", "GET http://a\na: b", hostcall.HTTPRequest{Method: "GET", URL: "http://a", Header: header{"A": {"b"}}}},
		{"a body of any bytes", "PUT http://a\n\n\xff\x00", hostcall.HTTPRequest{Method: "PUT", URL: "http://a", Header: header{}, Body: []byte("\xff\x00")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := hostcall.ParseRequest([]byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Body) == 0 {
				got.Body = nil
			}
			if diff := cmp.Diff(&tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for name, text := range map[string]string{
		"nothing": "", "no URL": "GET", "no method": " http://a", "an empty line": "\nGET http://a", "no UTF-8": "GET http://\xff",
		"no colon": "GET http://a\nheader\n\n", "a header that is no UTF-8": "GET http://a\na: \xff\n\n",
		"a long URL": "GET http://" + strings.Repeat("a", 65<<10), "a long header": "GET http://a\n" + strings.Repeat("a: b\n", 14<<10) + "\n",
	} {
		if r, err := hostcall.ParseRequest([]byte(text)); jobhost.CodeOf(err) != jobhost.CodeInvalid {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

func TestAppendResponse(t *testing.T) {
	t.Parallel()
	got := hostcall.AppendResponse(nil, &hostcall.HTTPResponse{
		Status: 404, Header: map[string][]string{"X-B": {"1", "2"}, "A": {"a\r\nb: c"}, "None": nil}, Body: []byte("body\n"),
	})
	if want := "404\na: a  b: c\nx-b: 1\nx-b: 2\n\nbody\n"; string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
	got = hostcall.AppendNoResponse(nil, &jobhost.Error{Code: jobhost.CodeDenied, Field: "denied", Message: "not allowed", Hint: "ask"})
	if want := "0\nerror: denied\n\nnot allowed"; string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := hostcall.AppendNoResponse(nil, t.Context().Err()); string(got) != "0\nerror: unknown\n\nthere was no response" {
		t.Errorf("%q", got)
	}
}

// FuzzParseRequest: what is accepted has no lines in its header, and the body is
// what is left of the text.
func FuzzParseRequest(f *testing.F) {
	for _, seed := range []string{"", "GET http://a", "POST http://a\na: b\n\nbody", "GET http://a\r\na: b\r\n\r\n", "GET http://a\n: \n\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := hostcall.ParseRequest(text)
		if err != nil {
			return
		}
		if strings.ContainsAny(r.Method+r.URL, "\n") || !bytes.HasSuffix(text, r.Body) {
			t.Fatalf("%+v", r)
		}
		for name, values := range r.Header {
			if strings.ContainsAny(name+strings.Join(values, ""), "\n") {
				t.Fatalf("%q: %q", name, values)
			}
		}
	})
}
