package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

// deadChange are the flags of dead retry and dead rm.
type deadChange struct {
	query       letterQuery
	rate        float64
	all         bool
	yes, dryRun bool
	action      jobhost.DeadAction
	change      change
}

func newDeadChangeCommand(e deadEnv, name, short string, action jobhost.DeadAction, c change) *cobra.Command {
	d := &deadChange{action: action, change: c}
	cmd := &cobra.Command{
		Use:   name + " [ID…]",
		Short: short,
		Example: fmt.Sprintf(`  jobhost dead %[1]s $ID
  jobhost dead %[1]s --all --worker loganalyzer --dry-run
  jobhost dead %[1]s --all --category network --after 24h --rate 50 --yes`, name),
		Args: func(_ *cobra.Command, ids []string) error {
			switch {
			case len(ids) == 0 && !d.all:
				return errors.New("name jobs, or say --all")
			case len(ids) > 0 && (d.all || d.query.given()):
				return errors.New("either name jobs or select letters with --all")
			}
			return checkIDs(ids)
		},
		RunE: func(cmd *cobra.Command, ids []string) error {
			if err := d.query.checkEmpty(cmd); err != nil {
				return err
			}
			if _, err := d.query.filter(); err != nil {
				return err
			}
			server, err := e.server()
			if err != nil {
				return err
			}
			if d.all {
				return e.changeAll(cmd.Context(), server, d)
			}
			return e.change(cmd.Context(), server, ids, d)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	d.query.register(e.env, cmd)
	flags := cmd.Flags()
	flags.BoolVar(&d.all, "all", false, "all dead letters, or those that the other flags select")
	flags.Float64Var(&d.rate, "rate", 0, "with --all, change `NUMBER` letters per second (default as fast as possible)")
	flags.BoolVar(&d.yes, "yes", false, "with --all, don't ask")
	flags.BoolVar(&d.dryRun, "dry-run", false, "show what would be done, and change nothing")
	return cmd
}

// change changes the dead jobs that were named.
func (e deadEnv) change(ctx context.Context, server jobhost.Server, ids []string, d *deadChange) error {
	c := d.change
	c.do = func(ctx context.Context, server jobhost.Server, id string) (jobhost.Job, error) {
		job, err := server.Job(ctx, id)
		if err == nil {
			err = checkDead(&job)
		}
		if err != nil || d.dryRun {
			return job, err
		}
		if d.action == jobhost.DeadRetry { // the dead tasks, and none that was cancelled
			return e.retry(ctx, server, id)
		}
		return d.change.do(ctx, server, id)
	}
	if d.dryRun {
		c.done = "would be " + c.done
	}
	return jobEnv(e).change(ctx, server, ids, c)
}

// retry lets the dead tasks of a job run again.
func (e deadEnv) retry(ctx context.Context, server jobhost.Server, id string) (jobhost.Job, error) {
	done, err := server.ChangeDead(ctx, jobhost.DeadChange{Action: jobhost.DeadRetry, Jobs: []string{id}})
	if err == nil && len(done.Failed) > 0 {
		err = done.Failed[0].Error
	}
	if err != nil {
		return jobhost.Job{}, err
	}
	return server.Job(ctx, id)
}

// changeAll changes the letters that the flags select, after asking.
func (e deadEnv) changeAll(ctx context.Context, server jobhost.Server, d *deadChange) error {
	if d.dryRun {
		return e.dryRun(ctx, server, d)
	}
	filter, err := d.query.filter()
	if err != nil {
		return err
	}
	if !d.yes {
		n := 0
		if _, err := letters(server, filter).each(ctx, 0, func(page []jobhost.DeadLetter) error {
			n += len(page)
			return nil
		}); err != nil {
			return err
		}
		if n > 0 {
			if err := e.confirm(fmt.Sprintf("%s %s?", d.change.verb, plural(n, "dead letter"))); err != nil {
				return err
			}
		}
	}
	done, failed := 0, 0
	for {
		part, err := server.ChangeDead(ctx, jobhost.DeadChange{Action: d.action, Filter: filter, Rate: d.rate})
		if err != nil {
			return err
		}
		done, failed = done+part.Changed, failed+len(part.Failed)
		for i := range part.Failed {
			e.report(fmt.Errorf("%s task %d of job %s: %w", d.change.verb, part.Failed[i].Task, part.Failed[i].Job, part.Failed[i].Error))
		}
		if part.Next == "" || part.Changed == 0 && len(part.Failed) > 0 {
			break
		}
		filter.Cursor = part.Next
	}
	if err := e.summarize(done, d.change.done); err != nil {
		return err
	}
	if failed > 0 {
		return errReported
	}
	return nil
}

// dryRun tells which letters would be changed.
func (e deadEnv) dryRun(ctx context.Context, server jobhost.Server, d *deadChange) error {
	filter, err := d.query.filter()
	if err != nil {
		return err
	}
	n, what := 0, "would be "+d.change.done
	_, err = letters(server, filter).each(ctx, 0, func(page []jobhost.DeadLetter) error {
		n += len(page)
		for i := range page {
			if e.wantsJSON() {
				if err := e.json(&page[i]); err != nil {
					return err
				}
				continue
			}
			_, _ = fmt.Fprintf(e.stdout, "%s %s task %d\n", what, printable(page[i].Job), page[i].Task)
		}
		return e.stdout.failure()
	})
	if err == nil && (n == 0 || e.stderr.terminal) {
		e.note("%s %s", plural(n, "dead letter"), what)
	}
	return err
}

// summarize tells how many letters were changed.
func (e deadEnv) summarize(n int, done string) error {
	if e.wantsJSON() {
		return e.json(map[string]any{"done": done, "letters": n})
	}
	_, err := fmt.Fprintf(e.stdout, "%s %s\n", done, plural(n, "dead letter"))
	return err
}
