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

// compileTime is how much CPU time a process may use to compile and initialise a plugin. The largest module that
// is accepted takes half of it on a slow machine.
const compileTime = 2 * time.Minute

// What a sandbox process may have besides the memories of its guests.
const (
	compileBytes  = 4 << 30   // while it compiles: that takes some hundred times the size of a function
	slotBytes     = 256 << 20 // for each slot: the stack of a guest, and messages
	reservedBytes = 64 << 30  // address space, which costs nothing
	fileBytes     = 5 << 30   // of a file: images of memories are such, too
	openFiles     = 1 << 16
	// minSlots is for how many slots there is room at least, since pools can be made larger later.
	minSlots = 64
)

// slotsOf returns for how many slots a process of a plugin has room.
func slotsOf(src *runtime.Source) int64 {
	processes := max(src.Processes, 1)
	return int64(max((src.Slots+processes-1)/processes, minSlots))
}

// runBytes is how much memory a process may have once its plugin is loaded.
func runBytes(src *runtime.Source) int64 {
	return compileBytes + slotsOf(src)*(src.Limits.OrDefaults().MemoryBytes+slotBytes)
}

// wall puts a wall around a sandbox process, before it looks at a plugin: what is left are the folder of compiled
// modules and what the plugin may see anyway.
func wall(l *loading, logger *slog.Logger) error {
	c := confine.Config{Files: true, Calls: confine.SandboxCalls, Limits: confine.Limits{
		Data: compileBytes, Raisable: true, FileSize: fileBytes, OpenFiles: openFiles, CPU: l.CompileTime,
	}}
	if now := confine.AddressSpace(); now > 0 {
		// A memory is reserved at its full size, and again by what one job grew.
		c.Limits.AddressSpace = now + reservedBytes + 2*max(slotsOf(&l.Source), jobhost.MaxSlots)*l.Source.Limits.OrDefaults().MemoryBytes
	}
	if l.CacheDir != "" {
		c.Paths = append(c.Paths, confine.Path{Path: l.CacheDir, Write: true})
	}
	for _, m := range l.Source.System.Mounts {
		c.Paths = append(c.Paths, confine.Path{Path: m.Host, Write: m.Write})
		c.SetTimes = c.SetTimes || m.Write
	}
	debug.SetMemoryLimit(compileBytes / 4 * 3) // then the collector works harder, before there is nothing left
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
// deadlines, after which the host ends it.
func (c *child) letRun(src *runtime.Source) error {
	pid, err := strconv.Atoi(c.process.ID())
	if err != nil {
		return fmt.Errorf("find the process: %w", err)
	}
	err = errors.Join(confine.LimitCPU(pid, 0), confine.LimitData(pid, runBytes(src)))
	if errors.Is(err, errors.ErrUnsupported) {
		return nil // nothing was limited that could be raised
	}
	return err
}

// ofPlugin returns the folder of compiled modules of a plugin, which it makes. It is of one worker and one
// module, since who can write it can make another process run what it wrote.
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
	_ = os.Chtimes(dir, now, now) // for prune.Folders: otherwise the folder only seems to be unused
	return dir, nil
}

// died says why a process has ended that was to load a plugin.
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
