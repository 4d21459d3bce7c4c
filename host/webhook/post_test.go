package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/netproxy/policy"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

func TestRequest(t *testing.T) {
	t.Parallel()
	requests := make(chan *http.Request, 2)
	bodies := make(chan string, 2)
	r := receive(t, func(w http.ResponseWriter, req *http.Request) {
		bodies <- drain(t, req)
		requests <- req
		w.WriteHeader(http.StatusAccepted)
	})
	w := worker(t, settings(t, r.URL))
	for range 2 { // on one connection
		began := time.Now().Add(-time.Second)
		outcome := attempt(t, w, r.URL+"/hook?x=y", time.Minute)
		if outcome.Kind != jobhost.OutcomeSucceeded || string(outcome.Output) != `{"status":202}` {
			t.Fatalf("got %+v", outcome)
		}
		req, body := <-requests, <-bodies
		h := req.Header
		if req.Method != http.MethodPost || req.RequestURI != "/hook?x=y" || h.Get("Content-Type") != "application/json" ||
			!strings.HasPrefix(h.Get("User-Agent"), "jobhost/") || h.Get("Webhook-Id") != "id-of-the-delivery" || body != `{"type":"job.ended"}` {
			t.Errorf("got %s %s %v %s", req.Method, req.RequestURI, h, body)
		}
		seconds, err := strconv.ParseInt(h.Get("Webhook-Timestamp"), 10, 64)
		at := time.Unix(seconds, 0)
		if err != nil || at.Before(began) || at.After(time.Now()) {
			t.Errorf("the timestamp is %v, %v", at, err)
		}
		if want := sign([]Key{key(t, exampleKey)}, "id-of-the-delivery", at, []byte(body)); h.Get("Webhook-Signature") != want {
			t.Errorf("the signature is %s, want %s", h.Get("Webhook-Signature"), want)
		}
	}
	if n := r.conns.Load(); n != 1 {
		t.Errorf("%d connections for two deliveries", n)
	}
}

// What is recorded of an attempt that reaches no receiver.
func TestUnreached(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	silent := receive(t, func(http.ResponseWriter, *http.Request) { <-hang })
	t.Cleanup(func() { close(hang) })
	closed := receive(t, nil)
	closed.Close()
	decoy := receive(t, func(http.ResponseWriter, *http.Request) {})
	named := strings.Replace(decoy.URL, "127.0.0.1", "localhost", 1)
	notPrivate := settings(t, named, decoy.URL)
	notPrivate.Policy.AllowPrivate = nil
	for _, tt := range []struct {
		name     string
		settings *Settings
		url      string
		within   time.Duration
		code     string
		category jobhost.Category
	}{
		{"silence", settings(t, silent.URL), silent.URL, 50 * time.Millisecond, jobhost.FailTimeout, jobhost.CategoryTimeout},
		{"nobody listens", settings(t, closed.URL), closed.URL, time.Minute, "connection", jobhost.CategoryNetwork},
		{"no such name", settings(t, "http://*"), "http://jobhost.invalid/", time.Minute, "dns", jobhost.CategoryNetwork},
		{"not TLS", settings(t, "https"+silent.URL[4:]), "https" + silent.URL[4:], time.Minute, "tls", jobhost.CategoryNetwork},
		{"no rule", settings(t), decoy.URL, time.Minute, jobhost.FailDenied, jobhost.CategoryBusiness},
		{"private by name", notPrivate, named, time.Minute, jobhost.FailDenied, jobhost.CategoryBusiness},
		{"private by address", notPrivate, decoy.URL, time.Minute, jobhost.FailDenied, jobhost.CategoryBusiness},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			outcome := attempt(t, worker(t, tt.settings), tt.url+"/secret-path", tt.within)
			f := outcome.Failure
			if f == nil || f.Code != tt.code || f.Category != tt.category || f.Retryable != tt.category.Retryable() {
				t.Fatalf("got %+v, %+v", outcome, f)
			}
			if strings.Contains(f.Message+f.Context, "secret-path") {
				t.Errorf("the record repeats the path: %+v", f)
			}
		})
	}
	t.Cleanup(func() {
		if n := decoy.conns.Load(); n != 0 {
			t.Errorf("the decoy saw %d connections", n)
		}
	})
}

func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	decoy := receive(t, func(http.ResponseWriter, *http.Request) {})
	for _, status := range []int{301, 302, 303, 307, 308} {
		r := receive(t, func(w http.ResponseWriter, req *http.Request) {
			http.Redirect(w, req, decoy.URL+"/there", status)
		})
		f := attempt(t, worker(t, settings(t, r.URL, decoy.URL)), r.URL, time.Minute).Failure
		if f == nil || f.Code != "http_"+strconv.Itoa(status) || !f.Retryable || !strings.Contains(f.Context, decoy.URL+"/there") {
			t.Errorf("%d: got %+v", status, f)
		}
	}
	if n := decoy.conns.Load(); n != 0 {
		t.Errorf("the decoy saw %d connections", n)
	}
}

// Answers that never end, or are too large, end within the limits; a status that
// came is the answer.
func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	// endless writes until its receiver has had enough.
	endless := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := fmt.Fprint(w, text); err != nil {
					return
				}
			}
		}
	}
	for _, tt := range []struct {
		name  string
		serve http.HandlerFunc
		code  string // of the failure; empty = success
	}{
		{"endless body", endless(strings.Repeat("x", 4096)), ""},
		{"body that stops", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, ""},
		{"body that is shorter than it said", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(http.StatusInternalServerError)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, "http_500"},
		{"huge header", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 1<<20))
		}, "response_too_large"},
		{"not HTTP", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = conn.Write([]byte("SSH-2.0-OpenSSH\r\n"))
				_ = conn.Close()
			}
		}, "connection"},
		{"another protocol", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"))
				_, _ = conn.Read(make([]byte, 1)) // until the other side gives up
				_ = conn.Close()
			}
		}, "connection"},
		{"header without end", func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\n"))
				_, _ = conn.Read(make([]byte, 1)) // until the other side gives up
				_ = conn.Close()
			}
		}, jobhost.FailTimeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := receive(t, func(w http.ResponseWriter, req *http.Request) {
				drain(t, req)
				tt.serve(w, req)
			})
			began := time.Now()
			outcome := attempt(t, worker(t, settings(t, r.URL)), r.URL, 300*time.Millisecond)
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
			if f := outcome.Failure; tt.code == "" && outcome.Kind != jobhost.OutcomeSucceeded || tt.code != "" && (f == nil || f.Code != tt.code) {
				t.Errorf("got %+v, %+v", outcome, f)
			}
		})
	}
}

// What is kept of an answer is its beginning, as text.
func TestKeptAnswer(t *testing.T) {
	t.Parallel()
	r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprint(w, "\xff\x1b[31m"+strings.Repeat("y", 10_000))
	})
	f := attempt(t, worker(t, settings(t, r.URL)), r.URL, time.Minute).Failure
	var kept answer
	if f == nil || json.Unmarshal([]byte(f.Context), &kept) != nil || kept.Status != 400 ||
		len(kept.Body) > maxKeptBytes+len("\uFFFD") || !strings.HasPrefix(kept.Body, "\uFFFD\x1b[31my") {
		t.Errorf("got %+v", f)
	}
}

// A payload that is no delivery, which only a damaged store has, is an error.
func TestBadDelivery(t *testing.T) {
	t.Parallel()
	w := worker(t, settings(t, "https://*"))
	for _, payload := range []string{"", "{}", "x", `{"url":"file:///etc/passwd","body":{}}`, `{"url":"https://a@example.com","body":{}}`} {
		at := &hostcall.Attempt{Input: []byte(payload), Deadline: time.Now().Add(time.Minute)}
		f := w.Run(t.Context(), at).Outcome.Failure
		if f == nil || f.Code != "bad_delivery" || f.Retryable {
			t.Errorf("%q: got %+v", payload, f)
		}
	}
}

// The jobs of deliveries say what they are for, and take turns by receiver.
func TestSpecs(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	for kind, spec := range map[string]jobhost.Spec{
		jobhost.MessageEnded: Ended("https://hooks.example.com:443/a?b", &jobhost.Ended{Job: "j", EndedAt: at}),
		jobhost.MessageDead:  Dead("https://hooks.example.com/dead", &jobhost.DeadLetter{Job: "j", DiedAt: at}),
	} {
		if spec.Worker != jobhost.WebhookWorker || spec.ConcurrencyKey != "https://hooks.example.com" ||
			spec.Labels[jobhost.LabelWebhook] != kind || spec.Labels[jobhost.LabelWebhookJob] != "j" || spec.Callback != (jobhost.Callback{}) {
			t.Errorf("%s: got %+v", kind, spec)
		}
		var d delivery
		var m struct {
			Type      string
			Timestamp time.Time
			Data      struct{ Job string }
		}
		if err := json.Unmarshal(spec.Payload, &d); err != nil || json.Unmarshal(d.Body, &m) != nil || m.Type != kind || !m.Timestamp.Equal(at) || m.Data.Job != "j" {
			t.Errorf("%s: %v: %s", kind, err, spec.Payload)
		}
		spec.Worker = "w" // the name is reserved, the rest is as of any other
		if err := spec.Check(); err != nil {
			t.Error(err)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*Settings)
		fields string
	}{
		{"fine", func(*Settings) {}, ""},
		{"nothing allowed", func(s *Settings) { s.Policy.Allow, s.Keys, s.Dead = nil, nil, "" }, ""},
		{"no key", func(s *Settings) { s.Keys = nil }, "secrets"},
		{"denied", func(s *Settings) { s.Dead = "https://example.org/" }, "dead"},
		{"special", func(s *Settings) {
			s.Policy = policy.Policy{Allow: []policy.Rule{{Scheme: "https", Host: "*", Port: 443, Path: "/*"}}}
			s.Dead = "https://10.0.0.1/"
		}, "dead"},
		{"no URL", func(s *Settings) { s.Dead = "hello" }, "dead"},
		{"several", func(s *Settings) { s.Timeout, s.Keys, s.Retry.MaxAttempts = 0, nil, 0 }, "max_attempts secrets timeout"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := settings(t, "https://example.com")
			s.Dead = "https://example.com/dead"
			tt.change(s)
			var fields []string
			var walk func(error)
			walk = func(err error) {
				if e, ok := err.(*jobhost.Error); ok { //nolint:errorlint // joined errors are walked by hand
					fields = append(fields, e.Field)
				} else if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // as above
					for _, err := range joined.Unwrap() {
						walk(err)
					}
				}
			}
			walk(s.Check())
			if got := strings.Join(fields, " "); got != tt.fields {
				t.Errorf("faults in %q, want %q", got, tt.fields)
			}
		})
	}
}
