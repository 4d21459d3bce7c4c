package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// comparison is everything that was measured.
type comparison struct {
	Date         string
	Machine      string
	Load         load
	LoadAverages [2]string // before and after
	Results      []result  // in the order in which they were measured
}

// compareMain runs the comparison requested by the flags.
func compareMain(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(o.dir, "peers-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o711); err != nil { // databases that run as other users need to pass through
		return err
	}
	c := &comparison{Date: time.Now().Format(time.DateOnly), Machine: machine(dir), Load: o.load}
	c.LoadAverages[0] = loadAverage()
	for round := range o.rounds {
		for i := range o.systems {
			name := o.systems[(round+i)%len(o.systems)] // each is first in turn
			r, err := turn(ctx, filepath.Join(dir, name), name, &o.load, stderr)
			if err != nil {
				return fmt.Errorf("round %d: %s: %w", round+1, name, err)
			}
			fmt.Fprintf(stderr, "round %d of %d: %s: %.0f done/s, %.0f in batches (load average %s)\n",
				round+1, o.rounds, name, r.Single.Done, r.Batched.Done, loadAverage())
			c.Results = append(c.Results, *r)
		}
	}
	c.LoadAverages[1] = loadAverage()
	if o.json {
		return json.NewEncoder(stdout).Encode(c)
	}
	return c.print(stdout, o.systems)
}

// turn measures one system once, in a process of its own, with its database
// beside it.
func turn(ctx context.Context, dir, name string, l *load, stderr io.Writer) (r *result, err error) {
	at := target{Dir: filepath.Join(dir, "client")}
	if serve := contenders[name].serve; serve != nil {
		s, err := serve(ctx, dir)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, s.close()) }()
		at.Address, at.PID = s.address, s.process.Process.Pid
	}
	if err := os.MkdirAll(at.Dir, 0o700); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(at.Dir)) }()
	input, err := json.Marshal(order{System: name, Target: at, Load: *l})
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var output bytes.Buffer
	child := exec.CommandContext(ctx, self, measureCommand)
	child.Stdin, child.Stdout, child.Stderr = bytes.NewReader(input), &output, stderr
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := child.Run(); err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	r = new(result)
	if err := json.Unmarshal(output.Bytes(), r); err != nil {
		return nil, fmt.Errorf("read the result: %w", err)
	}
	return r, nil
}
