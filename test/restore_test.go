package test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/client"
	"github.com/jobhost/jobhost/internal/testing/guests"
)

// try runs a command of the program that may fail, and returns what it says.
func (s *site) try(args ...string) (string, error) {
	s.t.Helper()
	path, err := binary()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.CommandContext(s.t.Context(), path, append(args, "-f", "manifest.toml")...)
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// newSharedSite returns a site whose large payloads are in a folder shared with
// other sites.
func newSharedSite(t *testing.T, folder string) *site {
	t.Helper()
	s := newSite(t)
	s.write("cat.wasm", guests.Cat)
	s.write("manifest.toml", []byte(s.manifest()+fmt.Sprintf(`
[worker.cat]
plugin = "cat.wasm"
output = "1GiB"

[payload]
orphan_age = "1s"

[[payload.store]]
name = "shared"
kind = "file"
path = %q
`, folder)))
	return s
}

// runLarge runs jobs whose payloads and results are objects.
func runLarge(t *testing.T, host *process, ids ...string) {
	t.Helper()
	for _, id := range ids {
		content := bytes.NewReader(large(id))
		if _, err := client.SubmitFrom(t.Context(), host, jobhost.Spec{ID: id, Worker: "cat"}, content); err != nil {
			t.Fatal(err)
		}
		awaitState(t, host, id, jobhost.Succeeded)
	}
}

// large is the payload of a job, and its result.
func large(id string) []byte { return bytes.Repeat([]byte(id+" "), 100<<10/(len(id)+1)) }

// wantLarge checks that the payloads and results of jobs exist.
func wantLarge(t *testing.T, host *process, ids ...string) {
	t.Helper()
	for _, id := range ids {
		for what, open := range map[string]func() (jobhost.Content, error){
			"payload": func() (jobhost.Content, error) { return host.OpenPayload(t.Context(), id) },
			"result":  func() (jobhost.Content, error) { return host.OpenResult(t.Context(), id, 0) },
		} {
			content, err := open()
			if err != nil {
				t.Errorf("%s of %s: %v", what, id, err)
				continue
			}
			got, err := io.ReadAll(content)
			_ = content.Close()
			if err != nil || !bytes.Equal(got, large(id)) {
				t.Errorf("%s of %s: %d bytes, %v", what, id, len(got), err)
			}
		}
	}
}

// awaitMetric returns when a metric of a host is at least a value.
func awaitMetric(t *testing.T, s *site, p *process, series string, least float64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var pause pauses
	for {
		if metric(ctx, t, s, series) >= least {
			return
		}
		select {
		case <-pause.next():
		case <-ctx.Done():
			t.Fatalf("%s is not %v:\n%s", series, least, p.logText())
		}
	}
}

func metric(ctx context.Context, t *testing.T, s *site, series string) (value float64) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0
	}
	if _, after, ok := strings.Cut(string(text), "\n"+series+" "); ok {
		_, _ = fmt.Sscan(after, &value)
	}
	return value
}

const listed = `jobhost_payload_objects_total{store="shared",verb="list"}`

// A backup that is restored beside the running original, with the same payload
// store, changes nothing there: neither removing a job nor a sweep removes an
// object of the original. After it has taken over, they do.
func TestDrillBesideTheOriginal(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	original, drill := newSharedSite(t, folder), newSharedSite(t, folder)
	host := original.start()
	runLarge(t, host, "before0", "before1")
	copied := filepath.Join(t.TempDir(), "copy")
	original.command("backup", copied)
	runLarge(t, host, "after0", "after1")

	out, err := drill.try("restore", copied)
	if err != nil || !strings.Contains(out, "restore --take-over") {
		t.Fatalf("restore: %v\n%s", err, out)
	}
	other := drill.start()
	wantLarge(t, other, "before0", "before1")
	runLarge(t, other, "own")
	if err := other.Delete(t.Context(), "before0"); err != nil {
		t.Fatal(err)
	}
	<-time.After(1500 * time.Millisecond) // all objects are older than orphan_age
	other.kill()
	other = drill.start()
	awaitMetric(t, drill, other, listed, 1)
	wantLarge(t, host, "before0", "before1", "after0", "after1")
	wantLarge(t, other, "own")

	for _, p := range []*process{host, other} {
		if code := p.stop(); code != 0 {
			t.Errorf("exit code %d:\n%s", code, p.logText())
		}
	}
	drill.command("restore", "--take-over")
	other = drill.start()
	// The objects of before0, after0 and after1 belong to no job now: a payload and a result each.
	awaitMetric(t, drill, other, `jobhost_payload_removed_total{reason="orphan"}`, 6)
	wantLarge(t, other, "before1", "own")
}
