package test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/firestorefake"
)

// A backup of a host with states in Firestore that is restored beside the running
// original touches nothing there: it doesn't start until it has taken over, unless it
// keeps states of its own.
func TestDrillBesideFirestore(t *testing.T) {
	t.Parallel()
	fake := firestorefake.New()
	env := []string{"FIRESTORE_EMULATOR_HOST=" + firestorefake.Serve(t, fake)}
	original, drill := newSite(t), newSite(t)
	for _, s := range []*site{original, drill} {
		s.env = env
		s.replace("[host]\n", "[host]\nstates = \"firestore:shared\"\n")
	}
	host := original.start()
	if _, err := host.Submit(t.Context(), jobhost.Spec{ID: "a", Worker: "echo"}); err != nil {
		t.Fatal(err)
	}
	awaitState(t, host, "a", jobhost.Succeeded)
	if _, err := host.SetState(t.Context(), "", jobhost.TaskState{JobID: "a", Tag: "half", Status: 7}, 1); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	original.command("backup", copied)
	if out, err := drill.try("restore", copied); err != nil {
		t.Fatalf("restore: %v\n%s", err, out)
	}

	before, _ := fake.Commits()
	wantRefused := func() {
		t.Helper()
		text, code := drill.runToEnd()
		if code != 1 || !strings.Contains(text, "jobhost restore --take-over") || !strings.Contains(text, "host.states") {
			t.Fatalf("exit code %d:\n%s", code, text)
		}
	}
	wantRefused()
	wantRefused() // the first start doesn't turn it into another store
	if after, _ := fake.Commits(); after != before {
		t.Errorf("the drill has made %d commits", after-before)
	}

	drill.replace(`states = "firestore:shared"`, `states = "store"`)
	own := drill.start()
	if err := own.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	own.stop()
	drill.replace(`states = "store"`, `states = "firestore:shared"`)
	wantRefused() // it is still a copy
	if after, _ := fake.Commits(); after != before || fake.Document("jobs/a") == nil {
		t.Errorf("the drill has made %d commits", after-before)
	}
	host.stop()

	drill.command("restore", "--take-over")
	drill.start()
}
