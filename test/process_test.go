package test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/client"
	"github.com/jobhost/jobhost/internal/testing/guests"
)

// binary builds jobhost once for all tests, without debug information: linking
// that takes longer than most tests.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "jobhost-test-*")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "jobhost")
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "github.com/jobhost/jobhost/cmd/jobhost").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build jobhost: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	if beDying() {
		return
	}
	// Most tests wait for processes most of the time. The command line may say otherwise.
	_ = flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))) // there is this flag
	code := m.Run()
	if path, err := binary(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// site is a folder with a manifest from which processes run, one after another.
type site struct {
	t    *testing.T
	dir  string
	addr string
	// program is run instead of jobhost and its command; nil = jobhost is.
	program []string
	env     []string // of the host, in addition to the test's own
}

func newSite(t *testing.T) *site {
	t.Helper()
	return newSiteAt(t, freeAddr(t))
}

func newSiteAt(t *testing.T, addr string) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), addr: addr}
	s.write("outcomes.wasm", guests.Outcomes)
	s.write("manifest.toml", fmt.Appendf(nil, `
[host]
listen = %q
shutdown_timeout = "5s"
cancel_grace = "500ms"
log_level = "debug"

[worker.echo]
plugin = "outcomes.wasm"
entry = "echo"
pool_size = 4

[worker.spin]
plugin = "outcomes.wasm"
entry = "spin"
pool_size = 2
`, s.addr))
	return s
}

func (s *site) write(name string, data []byte) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), data, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// replace changes the manifest.
func (s *site) replace(old, replacement string) {
	s.t.Helper()
	text := s.manifest()
	if !strings.Contains(text, old) {
		s.t.Fatalf("the manifest has no %q", old)
	}
	s.write("manifest.toml", []byte(strings.Replace(text, old, replacement, 1)))
}

// The ports of freeAddr lie below those that systems give to outgoing connections, one of which could take a port before
// the host that is to listen there.
const firstPort, ports = 12_000, 20_000

var (
	portOffset = rand.Uint32N(ports) //nolint:gosec // no secret: it only keeps test processes that run at one time off each other's ports
	lastPort   atomic.Uint32
)

// freeAddr returns a loopback address without a listener, another one each time.
func freeAddr(t *testing.T) string {
	t.Helper()
	for range ports {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(int(firstPort+(portOffset+lastPort.Add(1))%ports)))
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", addr)
		if err == nil {
			_ = l.Close()
			return addr
		}
	}
	t.Fatal("no port is free")
	return ""
}

// process is a running jobhost.
type process struct {
	*client.Client
	t    *testing.T
	cmd  *exec.Cmd
	lock sync.Mutex // protects log
	log  []string
	read chan struct{} // closed when the log has ended
}

// start starts a host and waits until it is ready.
func (s *site) start() *process {
	s.t.Helper()
	return s.launch("run")
}

// begin begins a command that runs a host.
func (s *site) begin(command ...string) *process {
	s.t.Helper()
	path, err := binary()
	if err != nil {
		s.t.Fatal(err)
	}
	argv := append([]string{path}, append(command, "-f", "manifest.toml")...)
	if s.program != nil {
		argv = s.program
	}
	p := &process{t: s.t, cmd: exec.Command(argv[0], argv[1:]...), read: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env = s.dir, append(os.Environ(), s.env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go p.readLog(bufio.NewScanner(stderr))
	s.t.Cleanup(func() { p.kill() })
	return p
}

// launch is start for a command that runs a host.
func (s *site) launch(command ...string) *process {
	s.t.Helper()
	p := s.begin(command...)
	p.awaitReady(s)
	token, err := os.ReadFile(filepath.Join(s.dir, "data", "token"))
	if err != nil {
		s.t.Fatal(err)
	}
	p.Client = client.New("http://"+s.addr, strings.TrimSpace(string(token)))
	return p
}

func (p *process) readLog(lines *bufio.Scanner) {
	defer close(p.read)
	for lines.Scan() {
		p.lock.Lock()
		p.log = append(p.log, lines.Text())
		p.lock.Unlock()
	}
}

func (p *process) awaitReady(s *site) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	var pause pauses
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+"/readyz", nil)
		if err != nil {
			s.t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-pause.next():
		case <-p.read:
			s.t.Fatalf("the host ended before it was ready:\n%s", p.logText())
		case <-ctx.Done():
			s.t.Fatalf("the host is not ready after a minute:\n%s", p.logText())
		}
	}
}

func (p *process) logText() string {
	p.lock.Lock()
	defer p.lock.Unlock()
	return strings.Join(p.log, "\n")
}

// logged reports whether the log has a line with the text.
func (p *process) logged(text string) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	return slices.ContainsFunc(p.log, func(line string) bool { return strings.Contains(line, text) })
}

// pauses are those between questions. They grow, since what takes its time needn't be asked for all of it.
type pauses struct{ last time.Duration }

// next returns a channel that gets the time when the next pause is over.
func (p *pauses) next() <-chan time.Time {
	p.last = min(5*time.Millisecond+p.last*5/4, 100*time.Millisecond)
	return time.After(p.last)
}

// attemptLine is a line of the host's log about an attempt.
type attemptLine struct {
	job, attempt string
	settled      bool // its end is durable; otherwise it begins
	returned     bool // the task was returned to the queue
	failed       bool // the attempt has failed, like those in progress at a crash
}

// attempts returns the log's lines about attempts, in order.
func (p *process) attempts() []attemptLine {
	p.lock.Lock()
	defer p.lock.Unlock()
	var lines []attemptLine
	for _, text := range p.log {
		settled := strings.Contains(text, `msg="attempt settled"`)
		if settled || strings.Contains(text, `msg="attempt begins"`) {
			lines = append(lines, attemptLine{
				job: value(text, "job"), attempt: value(text, "attempt"),
				settled: settled, returned: value(text, "outcome") == jobhost.OutcomeReturned.String(),
				failed: value(text, "outcome") == jobhost.OutcomeFailed.String(),
			})
		}
	}
	return lines
}

// value returns the value of a key in a line of the log.
func value(line, key string) string {
	_, rest, _ := strings.Cut(line, " "+key+"=")
	v, _, _ := strings.Cut(rest, " ")
	return v
}

// kill ends the process at once, as a crash would, and waits for its log.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.read
	_ = p.cmd.Wait()
}

// stop sends SIGTERM and returns the exit code.
func (p *process) stop() int {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	return p.wait()
}

func (p *process) wait() int {
	<-p.read
	err := p.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return 0
}

// awaitLog returns when the log has a line with the text.
func (p *process) awaitLog(text string) {
	p.t.Helper()
	var pause pauses
	for !p.logged(text) {
		select {
		case <-pause.next():
		case <-p.read:
			return
		}
	}
}

func (p *process) pid() string { return fmt.Sprint(p.cmd.Process.Pid) }

// awaitState returns the job when it is in a state.
func awaitState(t *testing.T, p *process, id string, state jobhost.State) jobhost.Job {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var pause pauses
	for {
		job, err := p.Job(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if job.State == state {
			return job
		}
		<-pause.next()
	}
}

func (s *site) manifest() string {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, "manifest.toml"))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

// runToEnd runs a host that is expected to end on its own.
func (s *site) runToEnd() (text string, code int) {
	s.t.Helper()
	path, err := binary()
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "run", "-f", "manifest.toml")
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), s.env...)
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(out), exit.ExitCode()
	} else if err != nil {
		s.t.Fatal(err)
	}
	return string(out), 0
}
