package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/draw"
)

func newWorkflowWatchCommand(e workflowEnv) *cobra.Command {
	cmd := e.one("watch", "Follow the steps of a workflow until it ends",
		`On a terminal the steps are a list that is redrawn in place, elsewhere a line for each
change. The output is printed at the end; -o json prints the events as they come
instead. The exit code tells whether the workflow completed.`,
		func(ctx context.Context, server jobhost.Server, id string) error {
			ctx, stop := interruptible(ctx)
			defer stop()
			if e.wantsJSON() {
				return e.watchEvents(ctx, server, id)
			}
			return e.await(ctx, server, id, 0)
		})
	cmd.Example = `  jobhost workflow watch wf-order-17
  jobhost workflow watch wf-order-17 -o json | jq 'select(.kind == "step")'`
	return cmd
}

// watchEvents prints the events of a workflow until it has ended. Its end is awaited
// besides, since it may come before the first event is asked for.
func (e workflowEnv) watchEvents(ctx context.Context, server jobhost.Server, id string) error {
	run, err := server.Workflow(ctx, id)
	if err != nil {
		return err
	}
	if run.Status.Ended() {
		return workflowEnd(&run)
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var all errgroup.Group
	all.Go(func() (err error) {
		if run, err = server.WaitWorkflow(ctx, id); err != nil {
			stop()
			return stoppedFollowing(ctx, id, err)
		}
		timer := time.AfterFunc(lastEvents, stop)
		<-watching.Done()
		timer.Stop()
		return nil
	})
	all.Go(func() error {
		defer stop()
		for event, err := range server.Events(watching, jobhost.EventQuery{Workflow: id}) {
			switch {
			case err != nil && watching.Err() != nil:
				return nil
			case err != nil:
				return fmt.Errorf("watch workflow %s: %w", id, err)
			}
			if err := e.json(&event); err != nil || event.Kind == jobhost.EventWorkflowEnded {
				return err
			}
		}
		return nil
	})
	if err := all.Wait(); err != nil {
		return err
	}
	return workflowEnd(&run)
}

const (
	// followEvery is how often a followed workflow is drawn, and looked at if something happened.
	followEvery = 200 * time.Millisecond
	// followLook is after how many of those it is looked at anyway: events may be lost.
	followLook = 10
)

// follow tells of the steps of a workflow on stderr until it has ended.
func (e workflowEnv) follow(ctx context.Context, server jobhost.Server, id string) (jobhost.WorkflowRun, error) {
	run, err := server.Workflow(ctx, id)
	if err != nil {
		return run, err
	}
	f := e.newFollowing()
	defer f.close()
	f.show(&run)
	if run.Status.Ended() {
		return run, nil
	}
	var all errgroup.Group
	watching, stop := context.WithCancel(ctx)
	happened := make(chan struct{}, 1) // holds one, more would say nothing new
	var end jobhost.WorkflowRun
	all.Go(func() (err error) {
		defer stop()
		end, err = server.WaitWorkflow(ctx, id)
		return err
	})
	all.Go(func() error {
		for event, err := range server.Events(watching, jobhost.EventQuery{Workflow: id}) {
			if err != nil {
				return nil //nolint:nilerr // the workflow is looked at now and then anyway, and its end awaited
			}
			if event.Kind == jobhost.EventStep || event.Kind == jobhost.EventWorkflowResumed {
				select {
				case happened <- struct{}{}:
				default:
				}
			}
		}
		return nil
	})
	e.keepShowing(watching, server, f, run, happened)
	if err := all.Wait(); err != nil {
		return run, err
	}
	f.show(&end)
	return end, nil
}

// keepShowing shows a workflow until ctx ends.
func (e workflowEnv) keepShowing(ctx context.Context, server jobhost.WorkflowRunner, f *following, run jobhost.WorkflowRun, happened <-chan struct{}) {
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		look := n%followLook == 0
		select {
		case <-happened:
			look = true
		default:
		}
		if look {
			if now, err := server.Workflow(ctx, run.ID); err == nil {
				run = now
			}
		}
		if look || f.live {
			f.show(&run)
		}
	}
}

// following shows where the steps of a workflow stand: on a terminal in lines that
// are redrawn, elsewhere in a line for each change.
type following struct {
	out     io.Writer
	columns func() int
	now     func() time.Time
	live    bool
	lines   int // on the terminal
	told    map[string]jobhost.StepStatus
}

func (e workflowEnv) newFollowing() *following {
	return &following{
		out: e.stderr, columns: e.columns, now: e.now, live: e.stderr.terminal && e.getenv("TERM") != "dumb",
		told: map[string]jobhost.StepStatus{},
	}
}

func (f *following) show(run *jobhost.WorkflowRun) {
	if f.live {
		f.redraw(run)
		return
	}
	for i := range run.Steps {
		s := &run.Steps[i]
		if before, seen := f.told[s.Name]; before == s.Status || !seen && s.Status == jobhost.StepPending {
			continue
		}
		f.told[s.Name] = s.Status
		_, _ = fmt.Fprintln(f.out, printable(strings.TrimRight(f.line(s), " ")))
	}
}

// line tells of a step: its mark, name, status, how long it took so far, and why.
func (f *following) line(s *jobhost.StepRun) string {
	text := fmt.Sprintf("%s %-20s %s", draw.Mark(s.Status), s.Name, s.Status)
	end := s.EndedAt
	if now := f.now(); end == nil && f.live {
		end = &now
	}
	if d := ran(s.StartedAt, end); d != "" && s.Status != jobhost.StepPending {
		text += "  " + d
	}
	if why := whyStep(s); why != "" {
		text += "  " + clip(why)
	}
	return text
}

// mostLines is how many steps are shown on a terminal, so that they can be redrawn.
const mostLines = 15

// up goes up some lines; eraseBelow erases from there.
const (
	up         = "\x1b[%dA"
	eraseBelow = "\x1b[J"
)

func (f *following) redraw(run *jobhost.WorkflowRun) {
	width := f.columns() - 1 // terminals differ in when they go on to the next line
	var b strings.Builder
	if f.lines > 0 {
		fmt.Fprintf(&b, up, f.lines)
	}
	b.WriteString(lineStart + eraseBelow)
	steps := worthSeeing(run.Steps)
	for _, s := range steps {
		b.WriteString(shorten(printable(f.line(s)), width) + "\n")
	}
	b.WriteString(shorten(printable(f.summary(run)), width) + "\n")
	f.lines = len(steps) + 1
	_, _ = io.WriteString(f.out, b.String())
}

// worthSeeing returns all steps, or if they are too many those that something happens with, and
// the others as far as there is room.
func worthSeeing(steps []jobhost.StepRun) []*jobhost.StepRun {
	rank := func(s jobhost.StepStatus) int {
		switch s {
		case jobhost.StepRunning, jobhost.StepRetrying:
			return 0
		case jobhost.StepFailed:
			return 1
		case jobhost.StepPending:
			return 2
		default:
			return 3
		}
	}
	worst := 3
	for count := len(steps); count > mostLines && worst > 0; worst-- {
		for i := range steps {
			if rank(steps[i].Status) == worst {
				count--
			}
		}
	}
	var list []*jobhost.StepRun
	for i := range steps {
		if rank(steps[i].Status) <= worst && len(list) < mostLines {
			list = append(list, &steps[i])
		}
	}
	return list
}

func (f *following) summary(run *jobhost.WorkflowRun) string {
	ended := 0
	for i := range run.Steps {
		if run.Steps[i].Status.Ended() {
			ended++
		}
	}
	end := run.EndedAt
	if now := f.now(); end == nil {
		end = &now
	}
	return fmt.Sprintf("%s %s: %d of %s, %s", run.ID, run.Status, ended, plural(len(run.Steps), "step"), ran(&run.StartedAt, end))
}

// close leaves what is shown, so that other output comes below it.
func (f *following) close() { f.lines = 0 }
