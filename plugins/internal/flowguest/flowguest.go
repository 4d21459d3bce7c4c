// Package flowguest tests the workflow of an example together with its worker, natively and on
// simulated time: what the definition says is done by the worker's own handlers.
package flowguest

import (
	"errors"
	"maps"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/flow/flowtest"
	"github.com/jobhost/jobhost/host/manifest"
	sdk "github.com/jobhost/jobhost/plugins/sdk/go"
)

// Worker is a worker of the manifest.
type Worker struct {
	// Entries are its handlers by the names of the entries; "" is that of jobs that name none.
	Entries map[string]sdk.Handler
	// Attempt is what every attempt is given, besides its input.
	Attempt sdk.Attempt
	// Keys are the worker's keys and values, which change with the success of attempts.
	Keys map[string]string
}

// New returns a kit for the only workflow of a manifest, with its only worker. The plugin need
// not be built.
func New(t testing.TB, file string, w *Worker) *flowtest.Kit {
	t.Helper()
	m, err := manifest.LoadForTests(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Workflows) != 1 || len(m.Workers) != 1 {
		t.Fatalf("%s has %d workflows and %d workers, not one of each", file, len(m.Workflows), len(m.Workers))
	}
	k := flowtest.New(t, m.Workflows[0])
	name := m.Workers[0].Name
	k.Worker(name, func(c *flowtest.Call) (any, error) {
		handler := w.Entries[c.Entry]
		if handler == nil {
			t.Fatalf("worker %s has no entry %q", name, c.Entry)
		}
		at := w.Attempt
		at.Input, at.Worker, at.Task, at.Tasks, at.Number, at.Keys = c.Input, name, c.Task, c.Tasks, c.Attempt, maps.Clone(w.Keys)
		got := sdk.Run(handler, at)
		if got.Err == nil {
			w.Keys = got.Keys
			return got.Output, nil
		}
		failure, told := errors.AsType[*sdk.Failure](got.Err)
		if !told {
			return nil, got.Err
		}
		return nil, flowtest.Fail(jobhost.Failure{
			Code: failure.Code, Category: jobhost.Category(failure.Category), Message: failure.Error(), Retryable: !failure.Permanent,
		})
	})
	return k
}
