package jobhost_test

import (
	"testing"

	"github.com/jobhost/jobhost"
)

func TestParseWorkerMode(t *testing.T) {
	t.Parallel()
	for _, want := range []jobhost.WorkerMode{jobhost.WorkerRunning, jobhost.WorkerPaused, jobhost.WorkerDraining} {
		if got, err := jobhost.ParseWorkerMode(string(want)); got != want || err != nil {
			t.Errorf("%s: got %q, %v", want, got, err)
		}
	}
	if _, err := jobhost.ParseWorkerMode("asleep"); jobhost.CodeOf(err) != jobhost.CodeInvalid || jobhost.HintOf(err) == "" {
		t.Errorf("got %v with code %s and hint %q", err, jobhost.CodeOf(err), jobhost.HintOf(err))
	}
}
