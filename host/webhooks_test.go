package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/hosttest"
	"github.com/jobhost/jobhost/host/metrics"
	"github.com/jobhost/jobhost/host/webhook"
	"github.com/jobhost/jobhost/netproxy/policy"
)

// canary is a secret that must not be seen anywhere.
const canary = "whsec_Q0FOQVJZLWNhbmFyeS1DQU5BUlktY2FuYXJ5"

// post is a request that a receiver got.
type post struct {
	id, signature, path string
	message             struct {
		Type string         `json:"type"`
		Data map[string]any `json:"data"`
	}
}

// receiver answers posts with the statuses given, the last one again and again.
type receiver struct {
	*httptest.Server
	posts chan post
	conns atomic.Int64
}

func receive(t testing.TB, statuses ...int) *receiver {
	t.Helper()
	r := &receiver{posts: make(chan post, 100)}
	var n atomic.Int64
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		p := post{id: req.Header.Get("Webhook-Id"), signature: req.Header.Get("Webhook-Signature"), path: req.URL.Path}
		body, err := io.ReadAll(req.Body)
		if err := errors.Join(err, json.Unmarshal(body, &p.message)); err != nil {
			t.Errorf("%v: %s", err, body)
		}
		w.WriteHeader(statuses[min(int(n.Add(1)), len(statuses))-1])
		r.posts <- p
	}))
	r.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			r.conns.Add(1)
		}
	}
	r.Start()
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) next(t testing.TB) post {
	t.Helper()
	select {
	case p := <-r.posts:
		return p
	case <-t.Context().Done():
	case <-time.After(time.Minute):
		t.Fatal("nobody posted within a minute")
	}
	return post{}
}

// hooked is config with webhooks to receivers on loopback; the first one is told
// of dead letters if dead is set.
func hooked(t testing.TB, dead bool, to ...*receiver) host.Config {
	t.Helper()
	s := webhook.DefaultSettings()
	key, err := webhook.ParseKey(canary)
	if err != nil {
		t.Fatal(err)
	}
	s.Keys = []webhook.Key{key}
	s.Policy.AllowPrivate = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	for _, r := range to {
		rule, err := policy.ParseRule(r.URL)
		if err != nil {
			t.Fatal(err)
		}
		s.Policy.Allow = append(s.Policy.Allow, rule)
	}
	s.Retry.MaxAttempts, s.Retry.Initial = 3, time.Millisecond
	if dead {
		s.Dead = to[0].URL + "/dead"
	}
	cfg := config(t)
	cfg.Webhook, cfg.Metrics = &s, metrics.New()
	return cfg
}

// deliveries waits for the ends of the deliveries about a job and returns them, the
// latest first.
func deliveries(t testing.TB, h *hosttest.Host, about string) []jobhost.Job {
	t.Helper()
	page, err := h.Jobs(t.Context(), jobhost.Filter{Worker: jobhost.WebhookWorker, Labels: map[string]string{jobhost.LabelWebhookJob: about}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range page.Jobs {
		page.Jobs[i] = wait(t, h, page.Jobs[i].ID)
	}
	return page.Jobs
}

// The end of a job arrives at its URL, signed, and again with the same id after
// an answer that is none.
func TestCallbackToAURL(t *testing.T) {
	t.Parallel()
	r := receive(t, 500, 200)
	h, _ := run(t, hooked(t, false, r))
	id := submit(t, h, jobhost.Spec{Payload: []byte("hello"), Callback: jobhost.Callback{URL: r.URL + "/hook"}})
	first, again := r.next(t), r.next(t)
	if first.id == "" || first.id != again.id || !strings.HasPrefix(again.signature, "v1,") || first.path != "/hook" {
		t.Errorf("got %+v, then %+v", first, again)
	}
	if m := first.message; m.Type != jobhost.MessageEnded || m.Data["job"] != id || m.Data["state"] != "succeeded" || m.Data["result"] != "hello" {
		t.Errorf("the message is %+v", m)
	}
	told := deliveries(t, h, id)
	if len(told) != 1 || told[0].ID != first.id || told[0].State != jobhost.Succeeded || told[0].Tasks[0].Attempt != 2 ||
		told[0].Failures[0].Code != "http_500" || told[0].Labels[jobhost.LabelWebhook] != jobhost.MessageEnded {
		t.Errorf("the deliveries are %+v", told)
	}
	if job := wait(t, h, id); job.Callback == nil || job.Callback.URL != r.URL+"/hook" {
		t.Errorf("the job is %+v", job)
	}
	if n := len(r.posts); n != 0 {
		t.Errorf("there are %d posts more", n)
	}
}

// A dead letter is told of, and a delivery that is refused for good is one that
// nobody is told of.
func TestDeadLetterToAURL(t *testing.T) {
	t.Parallel()
	r := receive(t, http.StatusGone)
	h, _ := run(t, hooked(t, true, r))
	id := submit(t, h, jobhost.Spec{Entry: "fail_permanent", Labels: map[string]string{"team": "red"}})
	p := r.next(t)
	labels, _ := p.message.Data["labels"].(map[string]any)
	if p.message.Type != jobhost.MessageDead || p.path != "/dead" || p.message.Data["job"] != id || p.message.Data["code"] == "" || labels["team"] != "red" {
		t.Errorf("got %+v", p)
	}
	told := deliveries(t, h, id)
	if len(told) != 1 || told[0].State != jobhost.Dead || told[0].Tasks[0].Attempt != 1 || told[0].Failures[0].Code != "http_410" {
		t.Fatalf("the deliveries are %+v", told)
	}
	letters, err := h.Dead(t.Context(), jobhost.DeadFilter{})
	if err != nil || len(letters.Letters) != 2 {
		t.Errorf("the dead letters are %+v, %v", letters, err)
	}
	if n := len(r.posts); n != 0 {
		t.Errorf("there are %d posts more", n)
	}
}

// What is not allowed is refused at the submit as far as the URL tells, and when it
// is dialled otherwise; then nobody sees a connection.
func TestDeniedURLs(t *testing.T) {
	t.Parallel()
	decoy := receive(t, 200)
	cfg := hooked(t, false)
	named := strings.Replace(decoy.URL, "127.0.0.1", "localhost", 1)
	rule, err := policy.ParseRule(named)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Webhook.Policy = policy.Policy{Allow: []policy.Rule{rule}}
	h, _ := run(t, cfg)
	_, err = h.Submit(t.Context(), jobhost.Spec{Worker: "test", Callback: jobhost.Callback{URL: decoy.URL + "/secret-path"}})
	if jobhost.CodeOf(err) != jobhost.CodeDenied || !strings.Contains(jobhost.HintOf(err), "webhook.allow") || strings.Contains(err.Error(), "secret-path") {
		t.Errorf("submit: %v, %q", err, jobhost.HintOf(err))
	}
	id := submit(t, h, jobhost.Spec{Callback: jobhost.Callback{URL: named}})
	wait(t, h, id)
	told := deliveries(t, h, id)
	if len(told) != 1 || told[0].State != jobhost.Dead || told[0].Failures[0].Code != jobhost.FailDenied || len(told[0].Failures) != 1 {
		t.Errorf("the deliveries are %+v", told)
	}
	if n := decoy.conns.Load(); n != 0 {
		t.Errorf("the decoy saw %d connections", n)
	}
}

// Operators do with the worker of deliveries what they do with others; it is there
// only when it is asked for.
func TestWorkerOfDeliveries(t *testing.T) {
	t.Parallel()
	r := receive(t, 200)
	cfg := hooked(t, false, r)
	h, _ := run(t, cfg)
	s := status(t, h, jobhost.WebhookWorker)
	if s.ABI != "builtin" || s.PoolSize != cfg.Webhook.PoolSize || s.ConcurrencyPerKey != 4 || s.MemoryBytes != 0 || s.Timeout != jobhost.Duration(30*time.Second) {
		t.Errorf("the worker is %+v", s)
	}
	for _, operate := range []func(context.Context, string) (jobhost.WorkerStatus, error){h.PauseWorker, h.ResumeWorker, h.PauseWorker} {
		if _, err := operate(t.Context(), jobhost.WebhookWorker); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := h.ScaleWorker(t.Context(), jobhost.WebhookWorker, 2); err != nil || s.Slots != 2 {
		t.Errorf("scaled to %+v, %v", s, err)
	}
	id := submit(t, h, jobhost.Spec{Callback: jobhost.Callback{URL: r.URL}})
	wait(t, h, id)
	page, err := h.Jobs(t.Context(), jobhost.Filter{Worker: jobhost.WebhookWorker})
	if err != nil || len(page.Jobs) != 1 || page.Jobs[0].State != jobhost.Held {
		t.Fatalf("the deliveries are %+v, %v", page, err)
	}
	if _, err := h.Cancel(t.Context(), page.Jobs[0].ID); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Retry(t.Context(), page.Jobs[0].ID); err != nil {
		t.Fatal(err)
	}
	if _, err := h.ResumeWorker(t.Context(), jobhost.WebhookWorker); err != nil {
		t.Fatal(err)
	}
	if p := r.next(t); p.id != page.Jobs[0].ID {
		t.Errorf("got %+v", p)
	}
	if !strings.Contains(scrape(cfg.Metrics), `worker="jobhost.webhook"`) {
		t.Error("the metrics know nothing of the worker")
	}
}

// Keys of messages are in nothing that is shown.
func TestWebhookSecretsAreNotSeen(t *testing.T) {
	t.Parallel()
	var log safeBuffer
	r := receive(t, 500, 500, 404)
	cfg := hooked(t, true, r)
	cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	h, stop := run(t, cfg)
	id := submit(t, h, jobhost.Spec{Entry: "fail_permanent", Callback: jobhost.Callback{URL: r.URL}})
	wait(t, h, id)
	told := deliveries(t, h, id)
	if len(told) != 2 {
		t.Fatalf("the deliveries are %+v", told)
	}
	seen := map[string]any{"config": fmt.Sprintf("%v %+v %#v", cfg, cfg.Webhook, cfg.Webhook), "deliveries": told}
	for i := range told {
		logs, err := h.Logs(t.Context(), told[i].ID)
		seen["logs "+told[i].ID] = logs
		seen["err"] = err
	}
	workers, err := h.Workers(t.Context())
	seen["workers"] = workers
	letters, deadErr := h.Dead(t.Context(), jobhost.DeadFilter{})
	seen["dead"] = letters
	if err := errors.Join(err, deadErr, stop()); err != nil {
		t.Fatal(err)
	}
	seen["metrics"], seen["log"] = scrape(cfg.Metrics), log.String()
	for _, what := range slices.Sorted(maps.Keys(seen)) {
		text := fmt.Sprintf("%+v", seen[what])
		data, err := json.Marshal(seen[what])
		if err != nil {
			data = nil
		}
		for _, shown := range []string{"CANARY", canary, strings.TrimPrefix(canary, "whsec_")} {
			if strings.Contains(text+string(data), shown) {
				t.Errorf("%s shows the secret", what)
			}
		}
	}
}

func TestWebhookConfig(t *testing.T) {
	t.Parallel()
	cfg := hooked(t, false)
	cfg.Workers = append(cfg.Workers, named(cfg.Workers[0], jobhost.WebhookWorker))
	cfg.Webhook.Dead, cfg.Webhook.PoolSize = "ftp://x", 0
	_, err := host.New(cfg)
	for _, want := range []string{"names that begin with jobhost. are the host's own", "webhook: this is not an absolute URL", "pool size 0"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
