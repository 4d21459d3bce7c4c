package main

import (
	"strings"
	"testing"
	"time"

	root "github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/flow/flowtest"
	"github.com/jobhost/jobhost/plugins/examples/internal/site"
	"github.com/jobhost/jobhost/plugins/internal/flowguest"
	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

func setup(t *testing.T) (*flowtest.Kit, *site.Site) {
	t.Helper()
	pages := &site.Site{}
	w := &flowguest.Worker{
		Entries: map[string]jobhost.Handler{"": fetch, "report": report},
		Attempt: jobhost.Attempt{HTTP: pages.Answer},
	}
	return flowguest.New(t, "manifest.toml", w), pages
}

// TestResume: a step that has failed runs again, and those before it don't.
func TestResume(t *testing.T) {
	t.Parallel()
	k, pages := setup(t)
	pages.SetDown(true)
	run := k.Start(map[string]string{"site": "http://shop"})
	got := run.Wait()
	if got.Status != root.WorkflowFailed || got.EndedBy != "prices" || got.Failure.Code != "http_503" || got.Step("prices").Attempts != 4 {
		t.Fatalf("%s by %s: %v\n%s", got.Status, got.EndedBy, got.Failure, got.Trace())
	}
	pages.SetDown(false)
	run.Advance(time.Hour)
	run.Retry("")
	got = run.Wait()
	if got.Status != root.WorkflowCompleted || got.Step("catalogue").Attempts != 1 || got.Step("prices").Runs != 2 {
		t.Fatalf("%s: %v\n%s", got.Status, got.Failure, got.Trace())
	}
	want := "catalogue: 440 bytes from http://shop/shop/, <!doctype html>\nprices: 37 bytes from http://shop/prices, item,price\n"
	if string(got.Bytes()) != want {
		t.Errorf("got %s", got.Bytes())
	}
}

// TestAWhile: an outage that ends in time is not even noticed.
func TestAWhile(t *testing.T) {
	t.Parallel()
	k, pages := setup(t)
	pages.SetDown(true)
	run := k.Start(map[string]string{"site": "http://shop"})
	run.Advance(300 * time.Millisecond)
	if s := run.Step("prices"); s.Status != root.StepRetrying || s.Attempts != 2 {
		t.Fatalf("prices is %s after %d attempts", s.Status, s.Attempts)
	}
	pages.SetDown(false)
	if got := run.Wait(); got.Status != root.WorkflowCompleted || got.Step("prices").Attempts != 3 {
		t.Errorf("%s: %v", got.Status, got.Failure)
	}
}

// TestGone: a missing page will still be missing later.
func TestGone(t *testing.T) {
	t.Parallel()
	pages := &site.Site{}
	got := jobhost.Run(fetch, jobhost.Attempt{Input: []byte(`{"url":"http://shop/status/404"}`), HTTP: pages.Answer})
	if got.Err == nil || !strings.Contains(got.Err.Error(), "answered 404") {
		t.Errorf("got %v", got.Err)
	}
	if got := jobhost.Run(report, jobhost.Attempt{Input: []byte(`{}`)}); got.Err == nil {
		t.Error("there is a report of nothing")
	}
}
