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

func newDeadCommand(e *env) *cobra.Command {
	return newGroup("dead", "Look after dead letters: tasks that are out of attempts or failed for good",
		newDeadListCommand(e), newDeadShowCommand(e), newDeadSummaryCommand(e),
		newDeadChangeCommand(e, "retry", "Run dead tasks again, with all their attempts", jobhost.DeadRetry, retryJob),
		newDeadChangeCommand(e, "rm", "Remove dead jobs with all that is known of them", jobhost.DeadDelete, removeJob))
}

// letterQuery are the flags that select dead letters.
type letterQuery struct {
	worker, code, text string
	category           choice
	after, before      instant
	labels             []string
	retried            bool
	limit              int
	all                bool
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

// pages calls do for each page of letters, up to most of them; 0 = all. more
// tells that there are further ones.
func (q *letterQuery) pages(ctx context.Context, server jobhost.Server, most int, do func([]jobhost.DeadLetter) error) (more bool, err error) {
	filter, err := q.filter()
	if err != nil {
		return false, err
	}
	for left := most; ; {
		filter.Limit = jobhost.MaxPage
		if most > 0 {
			filter.Limit = min(left, jobhost.MaxPage)
		}
		page, err := server.Dead(ctx, filter)
		if err != nil {
			return false, err
		}
		if err := do(page.Letters); err != nil {
			return false, err
		}
		left -= len(page.Letters)
		switch {
		case page.Next == "":
			return false, nil
		case most > 0 && left <= 0:
			return true, nil
		case page.Next == filter.Cursor:
			return false, errors.New("list dead letters: the server's list does not advance")
		}
		filter.Cursor = page.Next
	}
}

func newDeadListCommand(e *env) *cobra.Command {
	q := &letterQuery{}
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List dead letters with what they died of, the latest first",
		Example: `  jobhost dead ls
  jobhost dead ls --worker loganalyzer --after 24h
  jobhost dead ls --category network --text "connection refused" --all -o json`,
		Args:              exactly(),
		RunE:              func(cmd *cobra.Command, _ []string) error { return e.listDead(cmd.Context(), q) },
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	q.register(e, cmd)
	flags := cmd.Flags()
	flags.BoolVar(&q.retried, "retried", false, "those too that were retried")
	flags.IntVar(&q.limit, "limit", 50, "`NUMBER` of letters to list at most")
	flags.BoolVar(&q.all, "all", false, "list all, whatever the limit")
	return cmd
}

func (e *env) listDead(ctx context.Context, q *letterQuery) error {
	if q.limit < 1 && !q.all {
		return usagef("--limit %d is not at least 1", q.limit)
	}
	if _, err := q.filter(); err != nil {
		return err
	}
	server, err := e.server()
	if err != nil {
		return err
	}
	most := q.limit
	if q.all {
		most = 0
	}
	t := e.newTable()
	if !e.wantsJSON() {
		t.row("ID", "TASK", "WORKER", "DIED", "ATTEMPTS", "CODE", "MESSAGE")
	}
	more, err := q.pages(ctx, server, most, func(letters []jobhost.DeadLetter) error {
		for i := range letters {
			if !e.wantsJSON() {
				t.row(e.letterCells(&letters[i])...)
			} else if err := e.json(&letters[i]); err != nil {
				return err
			}
		}
		t.flush()
		return e.stdout.failure()
	})
	if err == nil && more && e.stdout.terminal {
		e.note("there are more letters; --limit or --all shows them")
	}
	return err
}

func (e *env) letterCells(l *jobhost.DeadLetter) []string {
	died := e.when(l.DiedAt)
	if l.Retried {
		died += " (retried)"
	}
	return []string{l.Job, strconv.Itoa(l.Task), l.Worker, died, strconv.Itoa(l.Attempts), l.Code, shorten(l.Message, mostCell)}
}

func newDeadShowCommand(e *env) *cobra.Command {
	return e.oneJob("show", "Show all that is known of a job with dead tasks, and every attempt's failure", `  jobhost dead ls
  jobhost dead show $ID`,
		func(ctx context.Context, server jobhost.Server, id string) error {
			job, err := server.Job(ctx, id)
			if err == nil {
				err = checkDead(&job)
			}
			if err != nil {
				return err
			}
			return e.showJob(ctx, server, id)
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
