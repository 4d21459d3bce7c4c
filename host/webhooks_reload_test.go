package host_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/webhook"
)

// A reload turns webhooks on, changes and ends them, as it does workers.
func TestWebhooksReload(t *testing.T) {
	t.Parallel()
	r := receive(t, 200)
	cfg := hooked(t, false, r)
	var now atomic.Pointer[webhook.Settings]
	workers, on := slices.Clone(cfg.Workers), cfg.Webhook
	cfg.Webhook = nil
	cfg.Reread = func(context.Context) (host.Update, error) {
		return host.Update{Workers: workers, Webhook: now.Load()}, nil
	}
	h, _ := run(t, cfg)
	spec := jobhost.Spec{Worker: "test", Callback: jobhost.Callback{URL: r.URL}}
	refused := func() {
		t.Helper()
		if _, err := h.Submit(t.Context(), spec); jobhost.CodeOf(err) != jobhost.CodeDenied || !strings.Contains(jobhost.HintOf(err), "[webhook]") {
			t.Errorf("submit: %v, %q", err, jobhost.HintOf(err))
		}
	}
	refused()
	now.Store(on)
	reload(t, h, "", "jobhost.webhook:added:1 test:unchanged:1")
	submit(t, h, spec)
	r.next(t)

	same, more := *on, *on
	same.Keys = slices.Clone(on.Keys)
	now.Store(&same)
	reload(t, h, "", "jobhost.webhook:unchanged:1 test:unchanged:1")
	more.PoolSize, more.Dead = 3, r.URL+"/dead"
	now.Store(&more)
	reload(t, h, jobhost.WebhookWorker, "jobhost.webhook:changed:2")
	submit(t, h, jobhost.Spec{Entry: "fail_permanent"})
	if p := r.next(t); p.path != "/dead" {
		t.Errorf("got %+v", p)
	}
	if _, err := h.SetWorkers(t.Context(), workers); err != nil { // says nothing of webhooks
		t.Fatal(err)
	}
	if s := status(t, h, jobhost.WebhookWorker); s.PoolSize != 3 || s.Version != 2 {
		t.Errorf("the worker is %+v", s)
	}

	// What was promised is held, and goes on when there are webhooks again.
	if _, err := h.PauseWorker(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	late := submit(t, h, spec)
	now.Store(nil)
	reload(t, h, "", "jobhost.webhook:removed:0 test:unchanged:1")
	refused()
	if _, err := h.ResumeWorker(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	wait(t, h, late)
	now.Store(on)
	reload(t, h, "", "jobhost.webhook:added:3 test:unchanged:1")
	if p := r.next(t); p.message.Data["job"] != late {
		t.Errorf("got %+v", p)
	}
}

// While webhooks come and go, each job that was taken with a callback is told of.
func TestWebhooksUnderReload(t *testing.T) {
	t.Parallel()
	r := receive(t, 200)
	r.posts = make(chan post, 10_000)
	cfg := hooked(t, false, r)
	var now atomic.Pointer[webhook.Settings]
	workers, on := slices.Clone(cfg.Workers), cfg.Webhook
	cfg.Reread = func(context.Context) (host.Update, error) {
		return host.Update{Workers: workers, Webhook: now.Load()}, nil
	}
	h, _ := run(t, cfg)
	var (
		work    sync.WaitGroup
		changed = make(chan struct{})
		lock    sync.Mutex
		taken   = map[string]bool{}
		took    = make(chan struct{}, 1)
	)
	for range 4 {
		work.Go(func() {
			for {
				select {
				case <-changed:
					return
				default:
				}
				receipt, err := h.Submit(t.Context(), jobhost.Spec{Worker: "test", Callback: jobhost.Callback{URL: r.URL}})
				switch {
				case err == nil:
					lock.Lock()
					taken[receipt.ID] = true
					lock.Unlock()
					select {
					case took <- struct{}{}:
					default:
					}
				case jobhost.CodeOf(err) != jobhost.CodeDenied:
					t.Error(err)
				}
			}
		})
	}
	for i := range 10 {
		next := *on
		next.PoolSize = i + 1
		now.Store(&next)
		if i%3 == 2 {
			now.Store(nil)
		}
		if _, err := h.Reload(t.Context(), ""); err != nil {
			t.Error(err)
		}
		if now.Load() != nil {
			<-took // one that was there already
			<-took
		}
	}
	close(changed)
	work.Wait()
	for len(taken) > 0 {
		id, _ := r.next(t).message.Data["job"].(string)
		if !taken[id] {
			t.Errorf("job %s is told of twice", id)
		}
		delete(taken, id)
	}
}
