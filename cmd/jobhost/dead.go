package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

// deadEnv is env for the commands about dead letters.
type deadEnv struct{ *env }

func newDeadCommand(e deadEnv) *cobra.Command {
	return newGroup("dead", "Manage dead letters: tasks that ran out of attempts or failed permanently",
		newDeadListCommand(e), newDeadShowCommand(e), newDeadSummaryCommand(e),
		newDeadChangeCommand(e, "retry", "Run dead tasks again, with all their attempts", jobhost.DeadRetry, retryJob),
		newDeadChangeCommand(e, "rm", "Remove dead jobs with their history", jobhost.DeadDelete, removeJob))
}

// letterQuery are the flags that select dead letters.
type letterQuery struct {
	worker, code, text string
	category           choice
	after, before      instant
	labels             []string
	retried            bool
}

func (q *letterQuery) register(e *env, cmd *cobra.Command) {
	q.after.now, q.before.now = e.now, e.now
	for _, c := range jobhost.Categories() {
		q.category.names = append(q.category.names, string(c))
	}
	flags := cmd.Flags()
	flags.StringVar(&q.worker, "worker", "", "only letters of this `WORKER`")
	flags.Var(&q.category, "category", "only letters with this `CATEGORY`")
	flags.StringVar(&q.code, "code", "", "only letters with this `CODE`")
	flags.StringVar(&q.text, "text", "", "only letters with this `TEXT` in the job's id, the code or the message")
	flags.StringArrayVar(&q.labels, "label", nil, "only jobs with this label, as `KEY=VALUE`; may be repeated")
	flags.Var(&q.after, "after", "only tasks that died at `TIME` or later: a time, or how long ago")
	flags.Var(&q.before, "before", "only tasks that died before `TIME`")
	_ = cmd.RegisterFlagCompletionFunc("worker", completeWorkers(e))
	complete(cmd, "category", q.category.names...)
}

// checkEmpty refuses texts that select by nothing: in a script they are a
// variable that isn't set, and must not stand for everything.
func (q *letterQuery) checkEmpty(cmd *cobra.Command) error {
	for _, name := range []string{"worker", "code", "text"} {
		if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
			return usagef("--%s is empty: leave it out, or give it a value", name)
		}
	}
	return nil
}

// given reports whether a flag selects anything.
func (q *letterQuery) given() bool {
	return q.worker+q.code+q.text+q.category.value+q.after.text+q.before.text != "" || len(q.labels) > 0
}

func (q *letterQuery) filter() (jobhost.DeadFilter, error) {
	f := jobhost.DeadFilter{
		Worker: q.worker, Category: jobhost.Category(q.category.value), Code: q.code, Text: q.text,
		After: q.after.time, Before: q.before.time, Retried: q.retried,
	}
	var err error
	if f.Labels, err = labels(q.labels); err != nil {
		return f, err
	}
	return f, asUsage(f.Check())
}

// letters returns the pages of the letters that filter selects.
func letters(server jobhost.Server, filter jobhost.DeadFilter) pager[jobhost.DeadLetter] {
	return func(ctx context.Context, cursor string, limit int) ([]jobhost.DeadLetter, string, error) {
		filter.Cursor, filter.Limit = cursor, limit
		page, err := server.Dead(ctx, filter)
		return page.Letters, page.Next, err
	}
}

func newDeadListCommand(e deadEnv) *cobra.Command {
	q, l := &letterQuery{}, &limits{}
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List dead letters with the cause of death, latest first",
		Example: `  jobhost dead ls
  jobhost dead ls --worker loganalyzer --after 24h
  jobhost dead ls --category network --text "connection refused" --all -o json`,
		Args:              exactly(),
		RunE:              func(cmd *cobra.Command, _ []string) error { return e.list(cmd.Context(), q, l) },
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	q.register(e.env, cmd)
	l.register(cmd, "letters")
	cmd.Flags().BoolVar(&q.retried, "retried", false, "include letters that were retried")
	return cmd
}

func (e deadEnv) list(ctx context.Context, q *letterQuery, l *limits) error {
	most, err := l.most()
	if err != nil {
		return err
	}
	filter, err := q.filter()
	if err != nil {
		return err
	}
	server, err := e.server()
	if err != nil {
		return err
	}
	list := listing[jobhost.DeadLetter]{
		things: "letters", columns: []string{"ID", "TASK", "WORKER", "DIED", "ATTEMPTS", "CODE", "MESSAGE"}, cells: e.cells,
	}
	return list.print(ctx, e.env, most, letters(server, filter))
}

func (e deadEnv) cells(l *jobhost.DeadLetter) []string {
	died := e.when(l.DiedAt)
	if l.Retried {
		died += " (retried)"
	}
	return []string{l.Job, strconv.Itoa(l.Task), l.Worker, died, strconv.Itoa(l.Attempts), l.Code, shorten(l.Message, mostCell)}
}

func newDeadShowCommand(e deadEnv) *cobra.Command {
	return jobEnv(e).one("show", "Show a job with dead tasks in full, with the failure of every attempt", `  jobhost dead ls
  jobhost dead show $ID`,
		func(ctx context.Context, server jobhost.Server, id string) error {
			job, err := server.Job(ctx, id)
			if err == nil {
				err = checkDead(&job)
			}
			if err != nil {
				return err
			}
			return jobEnv(e).show(ctx, server, id)
		})
}

// checkDead says so when a job has no dead task.
func checkDead(job *jobhost.Job) error {
	if slices.ContainsFunc(job.Tasks, func(t jobhost.Task) bool { return t.State == jobhost.Dead }) {
		return nil
	}
	return &jobhost.Error{
		Code:    jobhost.CodeConflict,
		Message: fmt.Sprintf("job %s is %v, not dead", job.ID, job.State),
		Hint:    "jobhost job show " + job.ID,
	}
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
