package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/client"
)

// submitFlags are the flags of submit.
type submitFlags struct {
	spec           jobhost.Spec
	wait           waitFlag
	lines, verbose bool
	file           string
	priority       choice
	delay, timeout duration
	retention      duration
	runAt          instant
	labels         []string
	deadline       duration
	uniqueFor      duration
}

// submitEnv is env for jobhost submit.
type submitEnv struct{ *env }

func newSubmitCommand(e submitEnv) *cobra.Command {
	f := &submitFlags{priority: choice{value: "normal", names: priorityNames()}}
	cmd := &cobra.Command{
		Use:   "submit WORKER [PAYLOAD|@FILE|-]",
		Short: "Submit a job, or one for each line of a file",
		Long: `Submit a job, or one for each line of a file.

The payload is the argument, the content of @FILE or --file, or stdin for -; it is
empty by default. Large payloads are streamed to the host first, without being held
in memory, up to payload.max of the manifest. The job's id is printed, or with
--wait its result.

With --lines each line of @FILE or stdin is the payload of a job, empty lines
too. With --wait the results are printed in the order of the lines, each on a
line of its own, and failed jobs are reported on stderr.

While the host is starting the command waits for it, for up to 30 seconds, or with
--wait for as long as that says.`,
		Example: `  jobhost submit wordcount "to be or not to be"
  jobhost submit loganalyzer @access.log --wait
  jobhost submit vowels --lines @names.txt --wait
  cat names.txt | jobhost submit vowels --lines --priority low --label source=names`,
		Args: between(1, "WORKER", "PAYLOAD"),
		RunE: func(cmd *cobra.Command, args []string) error {
			source := ""
			if len(args) == 2 {
				source = args[1]
			}
			if f.file != "" {
				if source != "" {
					return usagef("the payload is given twice: as an argument and by --file")
				}
				source = "@" + f.file
			}
			return e.submit(cmd.Context(), f, args[0], source)
		},
		ValidArgsFunction: completeWorkers(e.env),
	}
	f.register(cmd)
	return cmd
}

func (f *submitFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var(&f.wait, "wait", "wait for the end and print results; --wait=`DURATION` for at most so long")
	flags.Lookup("wait").NoOptDefVal = forever
	flags.StringVar(&f.file, "file", "", "`FILE` with the payload, of any size")
	flags.BoolVarP(&f.lines, "lines", "l", false, "one job per line of stdin or @FILE")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "with --lines, end with a summary on stderr even if it isn't a terminal")
	flags.StringVar(&f.spec.ID, "id", "", "`ID` of the job, which makes submitting it again harmless (default a new one)")
	flags.StringVar(&f.spec.Entry, "entry", "", "`EXPORT` to call (default the worker's)")
	flags.Var(&f.priority, "priority", "`LEVEL`: critical, high, normal, low or background")
	flags.Var(&f.delay, "delay", "start after `DURATION`, such as 90s or 7d")
	flags.Var(&f.runAt, "run-at", "start at `TIME`, such as 2026-02-03T15:04:05Z")
	flags.IntVar(&f.spec.Tasks, "tasks", 1, "`NUMBER` of tasks that the job consists of")
	flags.IntVar(&f.spec.MaxAttempts, "attempts", 0, "`NUMBER` of attempts, the first included (default the worker's)")
	flags.Var(&f.timeout, "timeout", "maximum `DURATION` of an attempt (default the worker's)")
	flags.Var(&f.retention, "retention", "`DURATION` that the job is kept after its end (default the worker's)")
	flags.StringArrayVar(&f.labels, "label", nil, "`KEY=VALUE` to find the job by; may be repeated")
	flags.StringVar(&f.spec.ConcurrencyKey, "concurrency-key", "", "`KEY` whose jobs take turns and share a limit")
	flags.Var(&f.deadline, "deadline", "give up the job if it hasn't started after `DURATION`")
	flags.StringVar(&f.spec.UniqueKey, "unique-key", "", "`KEY` that only one job of the worker may have at a time")
	flags.Var(&f.uniqueFor, "unique-for", "`DURATION` in which --unique-key keeps others out (default while the job is kept)")
	flags.StringVar(&f.spec.Callback.Worker, "callback", "", "`WORKER` that gets a job when this one ends")
	flags.StringVar(&f.spec.Callback.URL, "callback-url", "", "`URL` to notify when the job ends, if the manifest allows it")
	flags.StringVar(&f.spec.ContentType, "content-type", "", "`TYPE` of the payload, for the worker to read")
	complete(cmd, "priority", f.priority.names...)
}

// settle completes and checks the spec, all but its payload.
func (f *submitFlags) settle(worker string) error {
	s := &f.spec
	s.Worker = worker
	s.Deadline, s.UniqueFor = time.Duration(f.deadline), time.Duration(f.uniqueFor)
	if strings.Contains(s.Callback.Worker, "://") {
		return usagef("--callback takes a worker; --callback-url takes a URL")
	}
	if s.Callback.Worker != "" && s.Callback.URL != "" {
		return usagef("--callback and --callback-url exclude each other")
	}
	s.Delay, s.Timeout, s.RunAt = time.Duration(f.delay), time.Duration(f.timeout), f.runAt.time
	s.Retention = time.Duration(f.retention)
	priority, err := jobhost.ParsePriority(f.priority.value)
	if err != nil {
		return asUsage(err)
	}
	s.Priority = priority
	if s.Labels, err = labels(f.labels); err != nil {
		return err
	}
	if f.lines && s.ID != "" {
		return usagef("--id names one job and --lines submits many")
	}
	return asUsage(s.Check())
}

// labels reads labels written as KEY=VALUE.
func labels(texts []string) (map[string]string, error) {
	var labels map[string]string
	for _, text := range texts {
		key, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, usagef("--label %q is not KEY=VALUE", text)
		}
		if _, twice := labels[key]; twice {
			return nil, usagef("--label %s is given twice", key)
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = value
	}
	return labels, nil
}

func (e submitEnv) submit(ctx context.Context, f *submitFlags, worker, source string) error {
	if err := f.settle(worker); err != nil {
		return err
	}
	if f.lines {
		return e.lines(ctx, f, source)
	}
	in, err := e.payload(source)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	server, err := e.server()
	if err != nil {
		return err
	}
	if err := e.awaitStart(ctx, server, f.wait.forStart()); err != nil {
		return err
	}
	receipt, err := client.SubmitFrom(ctx, server, f.spec, in)
	if err != nil {
		return err
	}
	if receipt.Deduplicated {
		e.note("job %s was there before", receipt.ID)
	}
	if !f.wait.given {
		if e.wantsJSON() {
			return e.json(receipt)
		}
		_, err = fmt.Fprintln(e.stdout, printable(receipt.ID))
		return err
	}
	return e.wait(ctx, server, f, receipt)
}

func (e submitEnv) wait(ctx context.Context, server jobhost.Server, f *submitFlags, receipt jobhost.Receipt) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	end := await(ctx, server, receipt.ID, time.Duration(f.wait.most))
	end.Deduplicated = receipt.Deduplicated
	return resultWriter(e).end(ctx, server, end, asIs)
}
