package sdktest

import (
	"testing"

	"github.com/jobhost/jobhost"
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
