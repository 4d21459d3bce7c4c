package netproxy_test

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/jobhost/jobhost/netproxy"
)

func wantCode(t testing.TB, err error, kind netproxy.Kind, code netproxy.Code) *netproxy.Error {
	t.Helper()
	e, ok := errors.AsType[*netproxy.Error](err)
	if !ok || e.Kind != kind || e.Code != code {
		t.Fatalf("got %v (%+v), want %s/%s", err, e, kind, code)
	}
	return e
}

func TestCall(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Method", r.Method)
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write(append([]byte("you said "), body...))
	})
	c := localClient(t, netproxy.Config{}, s)
	resp, err := call(t, c, netproxy.RequestSpec{ID: "r", Method: "POST", URL: s.URL + "/x", Body: []byte("hello")})
	if err != nil {
		t.Fatal(err)
	}
	if resp.Status != http.StatusTeapot || string(resp.Body) != "you said hello" || resp.Header.Get("X-Method") != "POST" || resp.RequestID != "r" || resp.URL != s.URL+"/x" {
		t.Errorf("got %+v", resp)
	}
	_, err = call(t, c, netproxy.RequestSpec{URL: s.URL, RaiseErrors: true})
	if e := wantCode(t, err, netproxy.KindHTTP, netproxy.CodeClientError); e.Response == nil || e.Response.Status != http.StatusTeapot {
		t.Errorf("got %+v", e.Response)
	}
	_, err = call(t, c, netproxy.RequestSpec{URL: "http://127.0.0.2:" + s.port()})
	wantCode(t, err, netproxy.KindRequest, netproxy.CodeDenied)
	s.wantConns(t, 1)
}
