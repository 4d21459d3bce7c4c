package test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
)

// idleReaders is how many clients ask for something large and don't read it.
func idleReaders() int {
	if os.Getenv("JOBHOST_CHAOS") != "" {
		return 1000
	}
	return 96
}

// Clients ask for large results and payloads and don't read them: what the host holds for all
// of them together is bounded, and clients that do read are served.
func TestAnswersThatNobodyReads(t *testing.T) {
	t.Parallel()
	const most = 256 << 20
	s := newSite(t)
	s.replace("[host]", "[host]\nopen_reads = true")
	s.write("cat.wasm", guests.Cat)
	s.write("manifest.toml", []byte(s.manifest()+"\n[worker.cat]\nplugin = \"cat.wasm\"\n"))
	host := s.start()
	// Each byte takes six in JSON.
	payload := bytes.Repeat([]byte{1}, 1_000_000)
	receipt, err := host.Submit(t.Context(), jobhost.Spec{Worker: "cat", ID: "large", Tasks: 2, Payload: payload})
	if err != nil {
		t.Fatal(err)
	}
	if job, err := host.Wait(t.Context(), receipt.ID); err != nil || job.State != jobhost.Succeeded {
		t.Fatalf("got %+v, %v", job, err)
	}
	before := host.memory("VmRSS")
	token := s.token()
	var answered sync.WaitGroup
	for i := range idleReaders() {
		path := []string{"/v1/jobs/large/result", "/v1/jobs/large/result?task=1", "/v1/jobs/large/payload"}[max(0, i%8-5)]
		header := ""
		if i%2 == 0 {
			header = "Authorization: Bearer " + token + "\r\n"
		}
		conn := s.ask(path, header)
		answered.Go(func() { _, _ = conn.Read(make([]byte, 1)) })
	}
	result, err := host.Result(t.Context(), receipt.ID, 0)
	if err != nil || !bytes.Equal(result.Data, payload) {
		t.Errorf("one who reads got %d bytes, %v", len(result.Data), err)
	}
	answered.Wait()
	grown := host.memory("VmHWM") - before
	t.Logf("%d idle readers: %d MiB more than the %d MiB before", idleReaders(), grown>>20, before>>20)
	if grown > most {
		t.Errorf("the host grew by %d MiB, want at most %d", grown>>20, most>>20)
	}
}

// ask sends a request over a connection of its own that buffers little.
func (s *site) ask(path, header string) net.Conn {
	s.t.Helper()
	conn, err := (&net.Dialer{Timeout: time.Minute}).DialContext(s.t.Context(), "tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		s.t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(3 * time.Minute)); err != nil {
		s.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n"+header+"\r\n"); err != nil {
		s.t.Fatal(err)
	}
	return conn
}

// token returns that of the host.
func (s *site) token() string {
	s.t.Helper()
	text, err := os.ReadFile(s.dir + "/data/token")
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// memory returns what the kernel reports of a process's memory: VmRSS, the current, or
// VmHWM, the maximum; in bytes.
func (p *process) memory(what string) int64 {
	p.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%s/status", p.pid()))
	if err != nil {
		p.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), what+":")
	text, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kib, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		p.t.Fatalf("read %s: %v", what, err)
	}
	return kib << 10
}
