package test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
)

// TestWebhookSurvivesKills kills a host while deliveries wait and while one is
// in progress, and expects each message to arrive with the same id as before.
func TestWebhookSurvivesKills(t *testing.T) {
	t.Parallel()
	var up atomic.Bool // otherwise the receiver doesn't answer
	posts := make(chan string, 100)
	hang := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the host was killed
		}
		posts <- r.Header.Get("Webhook-Id") + " " + string(body)
		if !up.Load() {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		}
	}))
	defer receiver.Close()
	defer close(hang)
	next := func() string {
		t.Helper()
		select {
		case p := <-posts:
			return p
		case <-time.After(time.Minute):
			t.Fatal("nobody posted within a minute")
			return ""
		}
	}

	s := newSite(t)
	s.write("hook.key", []byte("whsec_"+strings.Repeat("a", 32)+"\n"))
	s.write("manifest.toml", fmt.Appendf([]byte(s.manifest()), `
[webhook]
allow = [%q]
allow_private = ["127.0.0.1"]
secrets = [{ file = "hook.key" }]
dead = %q
pool_size = 1
`, receiver.URL, receiver.URL+"/dead"))
	p := s.start()
	submit := func(spec jobhost.Spec) string {
		t.Helper()
		spec.Worker, spec.Callback = "echo", jobhost.Callback{URL: receiver.URL + "/hook"}
		r, err := p.Submit(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		return r.ID
	}
	submit(jobhost.Spec{ID: "first"})
	before := next() // in progress
	submit(jobhost.Spec{ID: "second", Entry: "fail_permanent"})
	awaitState(t, p, "second", jobhost.Dead)
	p.kill()

	up.Store(true)
	p = s.start()
	got := map[string]string{} // by the job that they report
	for range 3 {
		post := next()
		id, body, _ := strings.Cut(post, " ")
		switch {
		case strings.Contains(body, `"job":"first"`):
			got["first"] = id
		case strings.Contains(body, `"type":"task.dead"`):
			got["dead"] = id
		default:
			got["second"] = id
		}
		if strings.Contains(body, `"first"`) && post != before {
			t.Errorf("got %s after the restart, %s before it", post, before)
		}
	}
	if len(got) != 3 {
		t.Errorf("got %v", got)
	}
	for _, id := range got {
		awaitState(t, p, id, jobhost.Succeeded)
	}

	// After SIGHUP, a manifest without the section accepts no such jobs any more.
	without, _, _ := strings.Cut(s.manifest(), "[webhook]")
	s.write("manifest.toml", []byte(without))
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.awaitLog(`msg="worker removed; its tasks are held" worker=jobhost.webhook`)
	_, err := p.Submit(t.Context(), jobhost.Spec{Worker: "echo", Callback: jobhost.Callback{URL: receiver.URL}})
	if jobhost.CodeOf(err) != jobhost.CodeDenied || jobhost.HintOf(err) == "" {
		t.Errorf("submit: %v", err)
	}
	if code := p.stop(); code != 0 {
		t.Errorf("the host ended with %d:\n%s", code, p.logText())
	}
	if n := len(posts); n != 0 {
		t.Errorf("there are %d posts more", n)
	}
}
