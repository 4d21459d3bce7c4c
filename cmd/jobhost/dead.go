package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/jobhost/jobhost"
)

// deadAtOnce is how many jobs are asked for or changed at the same time.
const deadAtOnce = 8

func newDeadCommand(e *env) *cobra.Command {
	return newGroup("dead", "Look after dead letters: jobs that are out of attempts or failed for good",
		newDeadListCommand(e), newDeadShowCommand(e),
		newDeadChangeCommand(e, "retry", "Run dead jobs again, with all their attempts", retryJob),
		newDeadChangeCommand(e, "rm", "Remove dead jobs with all that is known of them", removeJob))
}

func newDeadListCommand(e *env) *cobra.Command {
	q := &jobQuery{}
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List dead jobs with what they died of, the newest first",
		Example: `  jobhost dead ls
  jobhost dead ls --worker loganalyzer --after 24h
  jobhost dead ls --all -o json`,
		Args:              exactly(),
		RunE:              func(cmd *cobra.Command, _ []string) error { return e.listDead(cmd.Context(), q) },
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	q.register(e, cmd, true)
	return cmd
}

func newDeadShowCommand(e *env) *cobra.Command {
	return e.oneJob("show", "Show all that is known of a dead job", `  jobhost dead ls
  jobhost dead show $ID`,
		func(ctx context.Context, server jobhost.Server, id string) error {
			job, err := server.Job(ctx, id)
			if err == nil && job.State != jobhost.Dead {
				err = notDead(&job)
			}
			if err != nil {
				return err
			}
			return e.showJob(ctx, server, id)
		})
}

func notDead(job *jobhost.Job) error {
	return &jobhost.Error{
		Code:    jobhost.CodeConflict,
		Message: fmt.Sprintf("job %s is %v, not dead", job.ID, job.State),
		Hint:    "jobhost job show " + job.ID,
	}
}

func (e *env) listDead(ctx context.Context, q *jobQuery) error {
	q.state = state(jobhost.Dead)
	return e.list(ctx, q, &listing{
		columns: []string{"ID", "WORKER", "ENDED", "ATTEMPTS", "CODE", "MESSAGE"},
		cells:   e.deadCells,
		// A list of deaths without what they died of is of no use.
		details: details,
	})
}

func (e *env) deadCells(j *jobhost.Job) []string {
	var last jobhost.Failure
	if n := len(j.Failures); n > 0 {
		last = j.Failures[n-1]
	}
	const most = 60 // characters of a message
	message := []rune(strings.ToValidUTF8(last.Message, "\ufffd"))
	if len(message) > most {
		message = append(message[:most-1:most-1], '…')
	}
	return []string{j.ID, j.Worker, e.whenever(j.EndedAt), strconv.Itoa(len(j.Failures)), last.Code, string(message)}
}

// details returns what is known of jobs that are dead, without those that are
// not any more.
func details(ctx context.Context, server jobhost.Reader, jobs []jobhost.Job) ([]jobhost.Job, error) {
	full := make([]jobhost.Job, len(jobs))
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(deadAtOnce)
	for i := range jobs {
		work.Go(func() error {
			job, err := server.Job(ctx, jobs[i].ID)
			if jobhost.CodeOf(err) == jobhost.CodeNotFound {
				return nil // removed since
			}
			full[i] = job
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return nil, err
	}
	return onlyDead(full), nil
}

// onlyDead keeps the jobs that are dead: a list also holds those of which one
// task is and another is still open.
func onlyDead(jobs []jobhost.Job) []jobhost.Job {
	kept := jobs[:0]
	for _, job := range jobs {
		if job.State == jobhost.Dead {
			kept = append(kept, job)
		}
	}
	return kept
}

// confirm asks the user; without a terminal to ask on it is a usage error.
func (e *env) confirm(question string) error {
	if !e.isTerminal(e.stdin) || !e.stderr.terminal {
		return usagef("there is no terminal to confirm on; add --yes, or see what it would do with --dry-run")
	}
	_, _ = fmt.Fprintf(e.stderr, "%s [y/N] ", printable(question))
	answer, err := bufio.NewReaderSize(e.stdin, 64).ReadSlice('\n')
	if text := strings.ToLower(strings.TrimSpace(string(answer))); err == nil && (text == "y" || text == "yes") {
		return nil
	}
	return errors.New("nothing was changed")
}
