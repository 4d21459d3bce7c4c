package main

import (
	"strings"
	"testing"
	"time"

	root "github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/flow/flowtest"
	"github.com/jobhost/jobhost/plugins/internal/flowguest"
	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

// setup returns a shop with three desks.
func setup(t *testing.T) (*flowtest.Kit, *flowguest.Worker) {
	t.Helper()
	w := &flowguest.Worker{
		Entries: map[string]jobhost.Handler{
			"": step(price), "reserve": step(reserve), "decline": step(decline), "charge": step(charge), "release": step(release),
		},
		Attempt: jobhost.Attempt{Config: map[string]string{"lamp": "40", "desk": "350", "credit": "1000"}},
		Keys:    map[string]string{"stock/desk": "3", "stock/lamp": "3"},
	}
	return flowguest.New(t, "manifest.toml", w), w
}

func desks(n int) order { return order{Order: "A-1", Item: "desk", Quantity: int64(n)} }

func TestOrders(t *testing.T) {
	t.Parallel()
	yes, no := approval{Approved: true, By: "Ada"}, approval{By: "Bob", Why: "too dear"}
	for name, c := range map[string]struct {
		order order
		say   any // nil = no answer
		want  end
		left  string
		after time.Duration
	}{
		"approved":    {desks(2), yes, end{"A-1", "charged", 700, ""}, "1", time.Second},
		"declined":    {desks(2), no, end{"A-1", "released", 700, "declined by Bob: too dear"}, "3", time.Second},
		"silence":     {desks(2), nil, end{"A-1", "released", 700, "declined by nobody: no signal approve has come within 5s"}, "3", 5 * time.Second},
		"no answer":   {desks(1), map[string]any{"approved": nil}, end{"A-1", "released", 350, "declined by : "}, "3", time.Second},
		"no credit":   {desks(3), yes, end{"A-1", "released", 1050, "the bank refuses 1050"}, "3", time.Second},
		"small order": {order{Order: "A-2", Item: "lamp", Quantity: 1}, nil, end{"A-2", "charged", 40, ""}, "3", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, w := setup(t)
			run := k.Start(c.order)
			if c.say != nil {
				run.Advance(time.Second)
				run.Signal("approve", c.say)
			}
			got := run.Wait()
			var out end
			got.Output(&out)
			if out != c.want || w.Keys["stock/desk"] != c.left || got.EndedAt.Sub(got.StartedAt) != c.after {
				t.Errorf("%+v after %v, %s desks are left\n%s", out, got.EndedAt.Sub(got.StartedAt), w.Keys["stock/desk"], got.Trace())
			}
		})
	}
}

// TestOutOfStock: what can't be reserved is not, and no approval is requested.
func TestOutOfStock(t *testing.T) {
	t.Parallel()
	k, w := setup(t)
	got := k.Start(desks(4)).Wait()
	if got.Status != root.WorkflowFailed || got.EndedBy != "reserve" || got.Failure.Code != "out_of_stock" || w.Keys["stock/desk"] != "3" {
		t.Errorf("%s by %s: %v; %s desks are left", got.Status, got.EndedBy, got.Failure, w.Keys["stock/desk"])
	}
	if strings.Contains(got.Trace().String(), "approve started") {
		t.Error("somebody was asked")
	}
}
