package test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/client"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/state/payload/payloadtest"
)

// newPayloadSite returns a site with a worker that copies payloads of any size.
func newPayloadSite(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.write("cat.wasm", guests.Cat)
	s.write("manifest.toml", []byte(s.manifest()+`
[worker.cat]
plugin = "cat.wasm"
output = "1GiB"
timeout = "2m"
pool_size = 2

[payload]
compress = true
orphan_age = "1s"
`))
	return s
}

// objects returns the files of the payload store, including those being written.
func (s *site) objects() (names []string) {
	s.t.Helper()
	err := filepath.WalkDir(filepath.Join(s.dir, "data", "payloads"), func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && d.Name() != "owner" && d.Name() != "copying" && filepath.Base(filepath.Dir(name)) != "marks" {
			names = append(names, name)
		}
		if os.IsNotExist(err) { // it was removed during the walk
			return nil
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return names
}

// awaitObjects returns when there are that many objects.
func (s *site) awaitObjects(n int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for len(s.objects()) != n {
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.t.Fatalf("there are %d objects, want %d", len(s.objects()), n)
		}
	}
}

// peak returns the maximum memory that the process has used, in bytes.
func (p *process) peak() int64 {
	p.t.Helper()
	status, err := os.ReadFile("/proc/" + p.pid() + "/status")
	if err != nil {
		p.t.Skip("this needs /proc")
	}
	_, after, _ := strings.Cut(string(status), "\nVmHWM:")
	line, _, _ := strings.Cut(after, "kB")
	kb, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return kb << 10
}

// A payload of 200 MB is uploaded, run through a worker that returns it, and
// downloaded, by a host that never has more than a part of it in memory.
func TestLargePayload(t *testing.T) {
	t.Parallel()
	const large, most = 200 << 20, 128 << 20
	s := newPayloadSite(t)
	s.replace("orphan_age = \"1s\"\n", "") // an upload must not expire while it is in progress
	host := s.start()
	before, began := host.peak(), time.Now()
	sent := sha256.New()
	source := io.TeeReader(io.LimitReader(payloadtest.NewStream(3), large), sent)
	receipt, err := client.SubmitFrom(t.Context(), host, jobhost.Spec{Worker: "cat"}, source)
	if err != nil {
		t.Fatal(err)
	}
	job, err := host.Wait(t.Context(), receipt.ID)
	if err != nil || job.State != jobhost.Succeeded || job.PayloadSize != large || job.Tasks[0].ResultSize != large {
		t.Fatalf("got %+v, %v", job, err)
	}
	for name, open := range map[string]func() (jobhost.Content, error){
		"payload": func() (jobhost.Content, error) { return host.OpenPayload(t.Context(), job.ID) },
		"result":  func() (jobhost.Content, error) { return host.OpenResult(t.Context(), job.ID, 0) },
	} {
		content, err := open()
		if err != nil {
			t.Fatal(err)
		}
		got := sha256.New()
		if n, err := io.Copy(got, content); n != large || err != nil || !bytes.Equal(got.Sum(nil), sent.Sum(nil)) {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
		content.Close()
	}
	if _, err := host.Result(t.Context(), job.ID, 0); jobhost.CodeOf(err) != jobhost.CodeTooLarge {
		t.Errorf("the result as a whole: %v", err)
	}
	growth := host.peak() - before
	t.Logf("%d MB in, through and out in %v; the host grew by %d MB", large>>20, time.Since(began).Round(time.Millisecond), growth>>20)
	if growth > most {
		t.Errorf("the host grew by %d MB", growth>>20)
	}
	if err := host.Delete(t.Context(), job.ID); err != nil {
		t.Fatal(err)
	}
	s.awaitObjects(0)
	if code := host.stop(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, host.logText())
	}
}

// A host is killed while payloads are uploaded and jobs with large ones are
// submitted and run. Nothing that was acknowledged is lost, and nothing remains
// that no job refers to.
func TestKillWithPayloads(t *testing.T) {
	t.Parallel()
	s := newPayloadSite(t)
	var book sync.Map // from ids of acknowledged jobs to seeds of their payloads
	n := max(kills()/3, 3)
	for process := range n {
		host := s.start()
		ctx, cancel := context.WithCancel(t.Context())
		var load sync.WaitGroup
		for producer := range 4 {
			load.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					seed := uint64(process*1_000_000 + producer*10_000 + i)
					spec := jobhost.Spec{ID: fmt.Sprintf("large-%d", seed), Worker: "cat"}
					if _, err := client.SubmitFrom(ctx, host, spec, seeded(seed)); err != nil {
						return
					}
					book.Store(spec.ID, seed)
				}
			})
		}
		load.Go(func() { // uploads that no job claims
			for ctx.Err() == nil {
				if _, err := host.Upload(ctx, seeded(uint64(process))); err != nil {
					return
				}
			}
		})
		<-time.After(200*time.Millisecond + rand.N(600*time.Millisecond))
		host.kill()
		cancel()
		load.Wait()
	}
	<-time.After(1100 * time.Millisecond) // orphan_age
	host := s.start()
	acked := 0
	book.Range(func(id, seed any) bool {
		acked++
		checkLarge(t, host, id.(string), seed.(uint64))
		return true
	})
	page, err := host.Jobs(t.Context(), jobhost.Filter{Limit: jobhost.MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	for i := range page.Jobs { // there may be some whose submit was not acknowledged
		if _, err := host.Wait(t.Context(), page.Jobs[i].ID); err != nil {
			t.Fatal(err)
		}
	}
	s.awaitObjects(2 * len(page.Jobs))
	t.Logf("%d jobs were acknowledged and %d are there after %d kills", acked, len(page.Jobs), n)
	for i := range page.Jobs {
		if err := host.Delete(t.Context(), page.Jobs[i].ID); err != nil {
			t.Fatal(err)
		}
	}
	s.awaitObjects(0)
	if code := host.stop(); code != 0 || acked == 0 {
		t.Errorf("%d jobs, exit code %d:\n%s", acked, code, host.logText())
	}
}

// seeded returns a payload that is large enough to be an object.
func seeded(seed uint64) io.Reader {
	return io.LimitReader(payloadtest.NewStream(seed), 70_000+int64(seed%7)*50_000)
}

// checkLarge checks that a job ends with its payload as its result.
func checkLarge(t *testing.T, host *process, id string, seed uint64) {
	t.Helper()
	job, err := host.Wait(t.Context(), id)
	if err != nil || job.State != jobhost.Succeeded {
		t.Errorf("acknowledged job %s is %v at the end, %v: %+v", id, job.State, err, job.Failures)
		return
	}
	content, err := host.OpenResult(t.Context(), id, 0)
	if err != nil {
		t.Errorf("result of job %s: %v", id, err)
		return
	}
	defer content.Close()
	want, _ := io.ReadAll(seeded(seed))
	if got, err := io.ReadAll(content); err != nil || !bytes.Equal(got, want) {
		t.Errorf("job %s has a result of %d bytes, %v; want %d", id, len(got), err, len(want))
	}
}

// A backup that is made while the host runs has the payloads of its jobs.
func TestBackupWithPayloads(t *testing.T) {
	t.Parallel()
	s := newPayloadSite(t)
	host := s.start()
	spec := jobhost.Spec{ID: "kept", Worker: "cat"}
	if _, err := client.SubmitFrom(t.Context(), host, spec, seeded(5)); err != nil {
		t.Fatal(err)
	}
	checkLarge(t, host, "kept", 5)
	backup := filepath.Join(s.dir, "backup")
	s.command("backup", backup)
	if err := host.Delete(t.Context(), "kept"); err != nil {
		t.Fatal(err)
	}
	s.awaitObjects(0)
	if code := host.stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	s.command("restore", backup, "--replace")
	host = s.start()
	checkLarge(t, host, "kept", 5)
	if code := host.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// command runs a command of the program to its end.
func (s *site) command(args ...string) {
	s.t.Helper()
	path, err := binary()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.CommandContext(s.t.Context(), path, append(args, "-f", "manifest.toml")...)
	cmd.Dir = s.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %v\n%s", args, err, out)
	}
}
