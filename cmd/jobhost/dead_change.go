package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/jobhost/jobhost"
)

// deadChange are the flags of dead retry and dead rm.
type deadChange struct {
	query       jobQuery
	yes, dryRun bool
	change      change
}

func newDeadChangeCommand(e *env, name, short string, c change) *cobra.Command {
	d := &deadChange{change: c}
	cmd := &cobra.Command{
		Use:   name + " [ID…]",
		Short: short,
		Example: fmt.Sprintf(`  jobhost dead %[1]s $ID
  jobhost dead %[1]s --all --worker loganalyzer --dry-run
  jobhost dead %[1]s --all --after 24h --yes`, name),
		Args: func(_ *cobra.Command, ids []string) error {
			switch {
			case len(ids) == 0 && !d.query.all:
				return errors.New("name jobs, or say --all")
			case len(ids) > 0 && (d.query.all || d.query.worker != "" || d.query.after.text != "" || d.query.before.text != ""):
				return errors.New("either name jobs or select them with --all")
			}
			return checkIDs(ids)
		},
		RunE: func(cmd *cobra.Command, ids []string) error {
			server, err := e.server()
			if err != nil {
				return err
			}
			if d.query.all {
				return e.changeAllDead(cmd.Context(), server, d)
			}
			return e.changeDead(cmd.Context(), server, ids, d)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	d.query.register(e, cmd, false)
	flags := cmd.Flags()
	flags.BoolVar(&d.query.all, "all", false, "all dead jobs, or those that the other flags select")
	flags.BoolVar(&d.yes, "yes", false, "with --all, don't ask")
	flags.BoolVar(&d.dryRun, "dry-run", false, "tell what would be done and change nothing")
	return cmd
}

// changeDead changes the dead jobs that were named.
func (e *env) changeDead(ctx context.Context, server jobhost.Server, ids []string, d *deadChange) error {
	c := d.change
	c.do = func(ctx context.Context, server jobhost.Server, id string) (jobhost.Job, error) {
		job, err := server.Job(ctx, id)
		if err == nil && job.State != jobhost.Dead {
			err = notDead(&job)
		}
		if err != nil || d.dryRun {
			return job, err
		}
		return d.change.do(ctx, server, id)
	}
	if d.dryRun {
		c.done = "would be " + c.done
	}
	return e.changeJobs(ctx, server, ids, c)
}

// changeAllDead changes the dead jobs that the flags select, after asking.
func (e *env) changeAllDead(ctx context.Context, server jobhost.Server, d *deadChange) error {
	d.query.state = state(jobhost.Dead)
	if !d.dryRun && !d.yes {
		n := 0
		if _, err := d.query.pages(ctx, server, func(jobs []jobhost.Job) error {
			n += len(onlyDead(jobs))
			return nil
		}); err != nil {
			return err
		}
		if n == 0 {
			return e.summarize(0, 0, d)
		}
		if err := e.confirm(fmt.Sprintf("%s %s?", d.change.verb, plural(n, "dead job"))); err != nil {
			return err
		}
	}
	done, failed := 0, 0
	_, err := d.query.pages(ctx, server, func(jobs []jobhost.Job) error {
		ok, bad, err := e.changePage(ctx, server, onlyDead(jobs), d)
		done, failed = done+ok, failed+bad
		return err
	})
	if err != nil {
		return err
	}
	return e.summarize(done, failed, d)
}

// changePage changes the jobs of a page, several at once, and tells of them in
// their order.
func (e *env) changePage(ctx context.Context, server jobhost.Server, jobs []jobhost.Job, d *deadChange) (done, failed int, err error) {
	c := d.change
	after, errs := slices.Clone(jobs), make([]error, len(jobs))
	if d.dryRun {
		c.done = "would be " + c.done
	} else {
		var work errgroup.Group
		work.SetLimit(deadAtOnce)
		for i := range jobs {
			work.Go(func() error {
				after[i], errs[i] = c.do(ctx, server, jobs[i].ID)
				return nil
			})
		}
		_ = work.Wait() // the errors are in errs
	}
	for i := range jobs {
		if errs[i] == nil {
			done++
		} else {
			failed++
		}
		if err := e.tellChange(jobs[i].ID, c, &after[i], errs[i]); err != nil {
			return done, failed, err
		}
	}
	return done, failed, nil
}

func (e *env) summarize(done, failed int, d *deadChange) error {
	what := d.change.done
	if d.dryRun {
		what = "would be " + what
	}
	if e.stderr.terminal || done+failed == 0 {
		e.note("%s %s", plural(done, "job"), what)
	}
	if failed > 0 {
		return errReported
	}
	return nil
}
