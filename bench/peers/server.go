package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// server is a database that was started for one measurement.
type server struct {
	address string
	process *exec.Cmd
	stop    []syscall.Signal // to send one after the other until it has ended
	ended   chan struct{}    // closed when it has
	waiting sync.WaitGroup
	exit    error // set before ended is closed
}

// Times allowed for a database.
const (
	startTime = 30 * time.Second
	stopTime  = 20 * time.Second // after each signal
)

// start runs a program as another user, if permitted, and waits until ready
// says that it answers. It gets a process group of its own, so that Ctrl-C
// reaches only us, and a signal when we are killed.
func start(ctx context.Context, as *servant, address string, stop []syscall.Signal, ready func(context.Context) error, program string, args ...string) (*server, error) {
	log, err := os.OpenFile(filepath.Join(as.dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	// The end of ctx would kill it; close asks it to stop first.
	s := &server{address: address, process: exec.CommandContext(context.WithoutCancel(ctx), program, args...), stop: stop, ended: make(chan struct{})}
	s.process.Dir, s.process.Stdout, s.process.Stderr = as.dir, log, log
	s.process.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "HOME=" + as.dir}
	s.process.SysProcAttr = &syscall.SysProcAttr{Credential: as.credential, Setpgid: true, Pdeathsig: stop[len(stop)-1]}
	if err := s.process.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	s.waiting.Go(func() {
		s.exit = s.process.Wait()
		close(s.ended)
	})
	if err := s.await(ctx, ready); err != nil {
		text, _ := os.ReadFile(log.Name())
		return nil, errors.Join(fmt.Errorf("start %s: %w\n%s", program, err, text), s.close())
	}
	return s, nil
}

func (s *server) await(ctx context.Context, ready func(context.Context) error) error {
	ctx, stop := context.WithTimeout(ctx, startTime)
	defer stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-s.ended:
			return fmt.Errorf("it ended: %w", s.exit)
		case <-ctx.Done():
			return fmt.Errorf("it doesn't answer: %w", err)
		}
	}
}

// close stops the database and waits for its end.
func (s *server) close() error {
	for _, sig := range s.stop {
		if err := s.process.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("stop process %d: %w", s.process.Process.Pid, err)
		}
		select {
		case <-s.ended:
			s.waiting.Wait()
			return nil
		case <-time.After(stopTime):
		}
	}
	return fmt.Errorf("process %d doesn't end", s.process.Process.Pid)
}

// servant is the user that runs a database, and its folder.
type servant struct {
	dir        string
	credential *syscall.Credential // nil = our own
}

// newServant makes a folder for the first existing one of some users.
// PostgreSQL refuses to run as root, and Redis need not.
func newServant(dir string, names ...string) (*servant, error) {
	s := &servant{dir: dir}
	if os.Getuid() == 0 {
		for _, name := range append(names, "nobody") {
			if u, err := user.Lookup(name); err == nil {
				uid, _ := strconv.ParseUint(u.Uid, 10, 32)
				gid, _ := strconv.ParseUint(u.Gid, 10, 32)
				s.credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
				break
			}
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if s.credential == nil {
		return s, nil
	}
	return s, os.Chown(dir, int(s.credential.Uid), int(s.credential.Gid))
}

// freePort returns a free port of the loopback interface.
func freePort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
