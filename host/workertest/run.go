package workertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/netproxy"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// Runner runs cases of one worker.
type Runner struct {
	Engine runtime.Engine
	// Worker is the tested worker, with what the manifest grants it.
	Worker host.Worker
	// Free is for a worker without a manifest: it may do everything that its cases
	// answer and expect.
	Free bool
	// Update writes outputs that differ.
	Update bool
	// Parallel is how many cases run at a time; at least 1.
	Parallel int

	suite   *Suite
	mu      sync.Mutex        // protects plugins
	plugins map[string]loaded // by configuration
}

// loaded is a plugin, or the error why there is none.
type loaded struct {
	runtime.Plugin
	err error
}

// Run runs some cases of a suite and reports each as soon as those before it are
// reported. The error is one that keeps all of them from running.
func (r *Runner) Run(ctx context.Context, s *Suite, cases []*Case, report func(*Result)) (err error) {
	r.suite, r.plugins = s, map[string]loaded{}
	defer func() {
		for _, p := range r.plugins {
			if p.err == nil {
				err = errors.Join(err, p.Close(context.WithoutCancel(ctx)))
			}
		}
	}()
	// First: a plugin that can't be loaded is not the fault of the cases.
	if _, err := r.load(ctx, r.config(&Case{})); err != nil {
		return err
	}
	todo := make(chan int)
	results := make([]chan *Result, len(cases))
	for i := range results {
		results[i] = make(chan *Result, 1)
	}
	work := scope.New(ctx, "test")
	err = work.Go("cases", func(ctx context.Context) error {
		defer close(todo)
		for i := range cases {
			select {
			case todo <- i:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	for range min(r.Parallel, len(cases)) {
		err = errors.Join(err, work.Go("case", func(ctx context.Context) error {
			for i := range todo {
				results[i] <- r.run(ctx, cases[i])
			}
			return nil
		}))
	}
	err = errors.Join(err, work.Go("report", func(ctx context.Context) error {
		for _, result := range results {
			select {
			case one := <-result:
				if ctx.Err() != nil { // it was stopped
					return context.Cause(ctx)
				}
				report(one)
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	}))
	end, _ := work.Join(context.WithoutCancel(ctx)) // without an end it waits to the end
	return errors.Join(err, ctx.Err(), end.Err())
}

// config returns the configuration for a case's worker.
func (r *Runner) config(c *Case) map[string]string {
	config := map[string]string{}
	maps.Copy(config, r.Worker.Config)
	maps.Copy(config, r.suite.Config)
	maps.Copy(config, c.Config)
	return config
}

// load returns the plugin with a configuration, which it may read during
// initialisation. It is compiled once.
func (r *Runner) load(ctx context.Context, config map[string]string) (runtime.Plugin, error) {
	id := ""
	for _, name := range slices.Sorted(maps.Keys(config)) {
		id += fmt.Sprintf("%q=%q ", name, config[name])
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.plugins[id]
	if !ok {
		src := r.Worker.Source()
		src.Config, src.Entry = config, cmp.Or(r.suite.Entry, src.Entry)
		p.Plugin, p.err = r.Engine.Load(ctx, src)
		r.plugins[id] = p
	}
	return p.Plugin, p.err
}

// run runs one case.
func (r *Runner) run(ctx context.Context, c *Case) *Result {
	result := &Result{Case: c}
	if c.Skip != "" {
		return result
	}
	config := r.config(c)
	plugin, err := r.load(ctx, config)
	if err != nil {
		result.Differences = []Difference{{What: "plugin", Want: "one that can be loaded", Got: err.Error()}}
		return result
	}
	at := c.attempt()
	at.Config = config
	at.Worker = r.Worker.Name
	r.limit(c, at)
	if missing := r.grant(c, at); missing != nil {
		result.Differences = missing
		return result
	}
	run, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	b := newBox(c, at, stop)
	r.around(b)
	at.Services = b
	sandbox := runtime.NewSandbox(plugin, nil)
	began := time.Now()
	at.Deadline = began.Add(r.timeout(c))
	outcome := sandbox.Run(run, at)
	result.Took = time.Since(began)
	if err := sandbox.Close(context.WithoutCancel(ctx)); err != nil {
		b.notef("the sandbox does not close: %v", err)
	}
	log, dropped := at.TakeLog()
	result.Log = string(log)
	if dropped > 0 {
		b.notef("%d lines of the log are over its limit", dropped)
	}
	j := &judge{test: c, box: b, outcome: &outcome, log: result.Log}
	result.Differences = j.compare()
	if r.Update {
		r.update(j, result)
	}
	result.Notes = slices.Concat(b.notes, j.notes)
	return result
}

func (r *Runner) timeout(c *Case) time.Duration {
	for _, d := range []time.Duration{c.Timeout, r.suite.Timeout, r.Worker.Limits.OrDefaults().Timeout} {
		if d > 0 {
			return d
		}
	}
	return runtime.DefaultLimits().Timeout
}

// limit sets the attempt's limits from the worker.
func (r *Runner) limit(c *Case, at *hostcall.Attempt) {
	l := r.Worker.Limits.OrDefaults()
	at.Limits = hostcall.Limits{
		OutputBytes: l.OutputBytes, LogBytes: l.LogBytes, LineBytes: l.LineBytes,
		OpenRequests: l.OpenRequests, Requests: l.Requests, RequestBytes: l.RequestBytes,
	}
	var level slog.Level
	if c.LogLevel != "" && level.UnmarshalText([]byte(c.LogLevel)) == nil {
		at.Limits.LogLevel = level
	}
	if labels := r.suite.Labels; len(labels) > 0 {
		at.Labels = maps.Clone(labels)
		maps.Copy(at.Labels, c.Labels)
	}
}

// grant sets what the attempt may do, from its worker. A case can't give it secrets
// that it would not have.
func (r *Runner) grant(c *Case, at *hostcall.Attempt) (missing []Difference) {
	at.Secrets = map[string]string{}
	maps.Copy(at.Secrets, r.Worker.Secrets)
	for _, secrets := range []map[string]string{r.suite.Secrets, c.Secrets} {
		for name, secret := range secrets {
			if _, granted := r.Worker.Secrets[name]; !granted && !r.Free {
				missing = append(missing, Difference{
					What: "secret " + name, Want: "one that the manifest grants to worker " + r.Worker.Name, Got: "no such grant",
				})
			}
			at.Secrets[name] = secret
		}
	}
	at.MaySubmit, at.MayWatch = r.Worker.MaySubmit, r.Worker.MayWatch
	if r.Free {
		for i := range c.Expect.Submits {
			at.MaySubmit = append(slices.Clip(at.MaySubmit), c.Expect.Submits[i].Worker)
		}
		for i := range c.Children {
			at.MaySubmit = append(slices.Clip(at.MaySubmit), c.Children[i].Worker)
		}
		for i := range c.States {
			at.MayWatch = append(slices.Clip(at.MayWatch), c.States[i].Worker)
		}
	}
	return missing
}

// around sets where requests may go.
func (r *Runner) around(b *box) {
	b.maxResponse = netproxy.DefaultMaxResponseBytes
	h := r.Worker.HTTP
	if h != nil && h.MaxResponseBytes > 0 {
		b.maxResponse = h.MaxResponseBytes
	}
	switch {
	case r.Free:
	case h == nil:
		b.noHTTP = true
	default:
		b.policy = &h.Policy
	}
}

// update writes the output of a case that ended as expected.
func (r *Runner) update(j *judge, result *Result) {
	c := j.test
	if j.outcome.Kind != jobhost.OutcomeSucceeded || c.Expect.Fail != nil || c.Expect.Snooze > 0 ||
		c.Output.inline != nil || c.Expect.Match != nil {
		return
	}
	if len(j.box.unanswered) > 0 { // the output is that of an incomplete environment
		j.notes = append(j.notes, "the output is not written before the case answers all that the worker asks")
		return
	}
	i := slices.IndexFunc(result.Differences, func(d Difference) bool { return d.What == "output" })
	if i < 0 {
		return
	}
	if c.Output.path == "" {
		c.Output.path = filepath.Join(c.dir, nameFor(c.stem, j.outcome.Output))
	}
	if err := c.Output.write(j.outcome.Output, c.Expect.Ignore); err != nil {
		j.notes = append(j.notes, err.Error())
		return
	}
	result.Differences = slices.Delete(result.Differences, i, i+1)
	result.Updated = c.Output.path
}
