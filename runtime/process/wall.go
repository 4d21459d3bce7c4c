package process

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/process/confine"
)

// compileTime is how much CPU time a process may use to compile and initialise a plugin, unless its worker may use more
// memory for that than usual. The largest accepted module takes half of it on a slow machine.
const compileTime = 2 * time.Minute

// compileTimeOf scales with the compile memory of the module.
func compileTimeOf(usual time.Duration, src *runtime.Source) time.Duration {
	more := float64(src.Limits.OrDefaults().CompileBytes) / float64(usualCompile)
	return max(usual, time.Duration(float64(usual)*more))
}

// How large a file written by a process may be: a compiled module, or what a guest writes to its mounts.
const (
	moduleBytes = 1 << 30
	mountBytes  = 5 << 30
)

// reserver is an engine that keeps images of plugins in memory files, and can create these in advance.
type reserver interface {
	Reserve(src *runtime.Source) error
}

// wall confines a sandbox process, before it looks at a plugin: what remains is the folder of compiled modules
// and what the plugin may see anyway.
func wall(l *loading, engine runtime.Engine, logger *slog.Logger) error {
	room := compileRoom(&l.Source)
	c := confine.Config{Files: true, Calls: confine.SandboxCalls, EndFirst: true, Limits: confine.Limits{
		Data: room.Data, AddressSpace: room.AddressSpace, OpenFiles: filesOf(slotsOf(&l.Source)), Raisable: true,
		FileSize: moduleBytes, CPU: l.CompileTime,
	}}
	if l.CacheDir != "" {
		c.Paths = append(c.Paths, confine.Path{Path: l.CacheDir, Write: true})
	}
	for _, m := range l.Source.System.Mounts {
		c.Paths = append(c.Paths, confine.Path{Path: m.Host, Write: m.Write})
		if m.Write {
			c.SetTimes, c.Limits.FileSize = true, mountBytes
		}
	}
	// Later it can't create files in memory, since their contents count towards no limit.
	if r, ok := engine.(reserver); ok {
		if err := r.Reserve(&l.Source); err != nil {
			return err
		}
	}
	debug.SetMemoryLimit(compileMemory(&l.Source) / 4 * 3) // so that the collector works harder before the memory is used up
	report, err := confine.Apply(c)
	if err != nil {
		return err
	}
	if len(report.Missing) > 0 {
		logger.Warn("this system can't confine the process in full", "report", report.String())
	}
	return nil
}

// letRun gives a process what it needs to run the plugin that it has loaded. From now on its tasks have
// deadlines, enforced by the host.
func (c *child) letRun(src *runtime.Source, info *runtime.Info) error {
	pid, err := strconv.Atoi(c.process.ID())
	if err != nil {
		return fmt.Errorf("find the process: %w", err)
	}
	c.allowed = newAllowance(c.process.ID(), src, info.ABI)
	if err := confine.LimitCPU(pid, 0); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return c.fit(slotsOf(src))
}

// ofPlugin returns, and creates, the folder of compiled modules of a plugin. It is for one worker and one
// module, since a process that can write to it can make another process run what it wrote.
func ofPlugin(cache string, src *runtime.Source) (string, error) {
	if cache == "" {
		return "", nil
	}
	h := sha256.New()
	add := func(part []byte) {
		_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		_, _ = h.Write(part)
	}
	add([]byte(src.Worker))
	add(src.Bytes)
	for _, linked := range src.Linked {
		add([]byte(linked.Name))
		add(linked.Bytes)
	}
	dir := filepath.Join(cache, hex.EncodeToString(h.Sum(nil)))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the folder of compiled modules: %w", err)
	}
	now := time.Now()
	_ = os.Chtimes(dir, now, now) // for prune.Folders: if this fails the folder merely seems unused
	return dir, nil
}

// died returns why a process that was loading a plugin has ended.
func (c *child) died(ctx context.Context, err error) error {
	timer := time.NewTimer(leaveTime)
	defer timer.Stop()
	select {
	case <-c.process.exited: // its stream ends a little earlier
	case <-timer.C:
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	e := &jobhost.Error{Code: jobhost.CodeInvalid, Message: "the process that was to compile the plugin has ended", Cause: c.explain(err)}
	if why := e.Cause.Error(); ctx.Err() != nil || strings.Contains(why, syscall.SIGXCPU.String()) || strings.Contains(why, "out of memory") {
		e.Hint = "compiling it takes more time or memory than there is for it: make the module smaller, or its functions"
	}
	return e
}
