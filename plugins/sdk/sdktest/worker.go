package sdktest

import (
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// Worker is a worker, such as an example, with a sandbox of its own. One goroutine
// uses it at a time.
type Worker struct{ box *sandbox }

// Open loads a worker until the end of t.
func Open(t *testing.T, module []byte) *Worker {
	t.Helper()
	return &Worker{newSandbox(t, load(t, module))}
}

// Call runs one job and returns the result; a job that doesn't succeed fails the
// test. An empty entry is the worker's own.
func (w *Worker) Call(t *testing.T, entry, input string) string {
	t.Helper()
	w.box.entry = entry
	return w.box.succeed(t, newWorld(), input)
}

// Fail is [Worker.Call] for a job that must fail.
func (w *Worker) Fail(t *testing.T, entry, input string) *jobhost.Failure {
	t.Helper()
	w.box.entry = entry
	return w.box.fail(t, newWorld(), input)
}

// Fiber runs an entry as a fiber that is sent messages until nobody can send any more,
// and returns what it has published. It must succeed.
func (w *Worker) Fiber(t *testing.T, entry string, messages ...string) (emitted []string) {
	t.Helper()
	w.box.entry = entry
	world := newWorld()
	world.Sent = runtimetest.NewStream(messages...)
	world.Sent.End(&jobhost.Error{Code: jobhost.CodeUnavailable, Message: "nobody can send any more"})
	w.box.succeed(t, world, "")
	return world.emitted
}

// Call is [Worker.Call] for one job.
func Call(t *testing.T, module []byte, entry, input string) string {
	t.Helper()
	return Open(t, module).Call(t, entry, input)
}

// Fail is [Worker.Fail] for one job.
func Fail(t *testing.T, module []byte, entry, input string) *jobhost.Failure {
	t.Helper()
	return Open(t, module).Fail(t, entry, input)
}
