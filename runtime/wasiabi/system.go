package wasiabi

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// Config is the environment of every attempt of an instance.
type Config struct {
	// Args follow the name of the worker, which is the first.
	Args []string
	// Env is added to the guest's environment, as NAME=value: in this order, and
	// before what [Environ] adds for commands.
	Env []string
	// BareEnv leaves out what [Environ] adds.
	BareEnv bool
	Mounts  []Mount
	// PreciseClock gives the guest the host's resolution of time. Without it
	// clocks move in steps of 1 ms, which is too coarse to measure the contents
	// of the processor's caches.
	PreciseClock bool
	// Stop is closed when the guest is stopped; nil = never. Blocking calls end
	// then; calls into a file system end when the kernel is done.
	Stop <-chan struct{}
	// MaxOpen limits the number of open descriptors, including streams and
	// mounts; 0 = 64.
	MaxOpen int
	// MaxWrite limits the bytes by which an attempt may fill the mounts, 0 = no
	// limit: what it writes, gaps that it leaves in files, and 4 KiB for each
	// new name. Deleting gives nothing back.
	MaxWrite int64
}

// Mount is a directory of the host that a guest sees under a path.
type Mount struct {
	// Root is the directory; the system doesn't close it. If it is nil, Host is
	// opened instead.
	Root *os.Root
	Host string
	// Guest is the absolute path that the guest sees.
	Guest string
	// ReadOnly refuses every modification.
	ReadOnly bool
}

// Streams says how the standard streams are connected.
type Streams uint8

// The ways to connect the streams.
const (
	// Log: lines on output and errors go to the log of the attempt, at info and
	// at warn; the input is empty. The environment is [Config.Env] alone.
	Log Streams = iota
	// Command: the input is that of the attempt, output is added to the result,
	// lines on errors go to the log at info.
	Command
)

const defaultMaxOpen = 64

// System is the WASI state of one instance. It is not safe for concurrent use.
type System struct {
	args     []string
	ownEnv   []string
	bareEnv  bool
	precise  bool
	stop     <-chan struct{}
	maxOpen  int
	maxWrite int64
	mounts   []*mount
	base     []descriptor // the table at the beginning of every attempt

	at   *hostcall.Attempt
	idle hostcall.Attempt // replaces at while there is none; it accepts nothing
	mode Streams

	fds     []descriptor
	changed bool // fds differs from base
	written int64
	refused bool
	out     stream
	err     stream
	env     []string // nil = not requested yet
	exit    Exit
}

// mount is an open mount.
type mount struct {
	root     *os.Root
	own      bool
	guest    string
	readOnly bool
}

// New returns a system. Close frees it.
func New(cfg Config) (*System, error) {
	s := &System{
		args:     cfg.Args,
		ownEnv:   cfg.Env,
		bareEnv:  cfg.BareEnv,
		precise:  cfg.PreciseClock,
		stop:     cfg.Stop,
		maxOpen:  cfg.MaxOpen,
		maxWrite: cfg.MaxWrite,
	}
	s.at = &s.idle
	if s.maxOpen == 0 {
		s.maxOpen = defaultMaxOpen
	}
	s.base = []descriptor{
		{kind: input, rights: inputRights},
		{kind: output, rights: outputRights},
		{kind: errout, rights: outputRights},
	}
	if need := len(s.base) + len(cfg.Mounts); s.maxOpen < need {
		return nil, jobhost.Invalid("maxopen", "raise it or drop mounts", "%d descriptors are less than the streams and mounts need, %d", s.maxOpen, need)
	}
	for _, m := range cfg.Mounts {
		if err := s.mount(m); err != nil {
			return nil, errors.Join(fmt.Errorf("mount %s: %w", m.Guest, err), s.Close())
		}
	}
	s.fds = append([]descriptor(nil), s.base...)
	return s, nil
}

func (s *System) mount(m Mount) error {
	if !path.IsAbs(m.Guest) || strings.IndexByte(m.Guest, 0) >= 0 || len(m.Guest) > maxPath {
		return jobhost.Invalid("mount", "write it like /data", "%.100q is not an absolute path for the guest", m.Guest)
	}
	opened := &mount{root: m.Root, guest: path.Clean(m.Guest), readOnly: m.ReadOnly}
	for _, other := range s.mounts {
		if other.guest == opened.guest {
			return jobhost.Invalid("mount", "choose another path for one of them", "%.100q is there twice", m.Guest)
		}
	}
	if opened.root == nil {
		// The dot makes the kernel refuse what isn't a directory: opening a FIFO would block.
		root, err := os.OpenRoot(m.Host + "/.")
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err // readers of the error need not know where it is
		}
		if err != nil {
			return fmt.Errorf("open the directory: %w", err)
		}
		opened.root, opened.own = root, true
	}
	s.mounts = append(s.mounts, opened)
	d := descriptor{
		kind: directory, rights: directoryRights, inherit: directoryRights | fileRights,
		dir: &openDir{mount: opened, root: opened.root, path: "."},
	}
	if m.ReadOnly {
		d.rights &^= changingRights
		d.inherit &^= changingRights
	}
	s.base = append(s.base, d)
	return nil
}

// Begin sets the attempt that the system works for, until [System.End].
func (s *System) Begin(at *hostcall.Attempt, mode Streams) {
	s.at, s.mode = at, mode
	s.written, s.refused = 0, false
	s.out.begin(hostcall.LevelInfo)
	s.err.begin(hostcall.LevelWarn)
	if mode == Command {
		s.err.level = hostcall.LevelInfo
	}
}

// End logs incomplete lines and restores the descriptors and everything else
// for the next attempt: what a guest opened while it was initialised is closed
// too. If nothing was opened or changed it costs next to nothing. The attempt
// is released.
func (s *System) End() {
	s.out.flush(s.at)
	s.err.flush(s.at)
	s.at, s.env = &s.idle, nil
	if s.changed {
		s.restore()
	}
}

// Close closes everything. The system must not be used any more.
func (s *System) Close() error {
	if s.changed {
		s.restore()
	}
	var errs []error
	for _, m := range s.mounts {
		if m.own {
			errs = append(errs, m.root.Close())
		}
	}
	return errors.Join(errs...)
}

// stopped reports whether the guest should end.
func (s *System) stopped() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// charge takes n bytes from what the attempt may still write; EDQUOT = there is
// not enough left.
func (s *System) charge(n int64) Errno {
	if s.maxWrite > 0 {
		if n > s.maxWrite-s.written {
			return EDQUOT
		}
		s.written += n
	}
	return OK
}

// nameCost is the charge for a new name, since it takes an inode.
const nameCost = 4096

// name charges for a new name and creates it.
func (s *System) name(create func() error) Errno {
	if e := s.charge(nameCost); e != OK {
		return e
	}
	err := create()
	if err != nil && s.maxWrite > 0 {
		s.written -= nameCost
	}
	return errnoOf(err)
}
