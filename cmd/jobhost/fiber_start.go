package main

import (
	"bytes"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

// fiberFlags are those of a start.
type fiberFlags struct {
	spec                 jobhost.FiberSpec
	init                 string
	labels               []string
	when                 choice
	initial, max, within duration
}

func newFiberStartCommand(e fiberEnv) *cobra.Command {
	f := &fiberFlags{when: choice{names: []string{
		string(jobhost.RestartNever), string(jobhost.RestartOnFailure), string(jobhost.RestartAlways),
	}}}
	cmd := &cobra.Command{
		Use:   "start WORKER",
		Short: "Start a fiber",
		Long: `Start a fiber and print its id.

Starting a running fiber again with the same options does nothing. At the maximum
number of fibers the start waits, unless the manifest says when_full = "fail".`,
		Example: `  jobhost fiber start chat-room --id lobby
  jobhost fiber start chat-room --id lobby --init @rules.txt --label floor=1
  jobhost fiber start chat-room --id lobby --restart on_failure --restart-initial 5s`,
		Args: exactly("WORKER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.settle(e.env, args[0]); err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return e.start(ctx, f.spec)
		},
		ValidArgsFunction: completeWorkers(e.env),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.spec.ID, "id", "", "`ID` of the fiber")
	flags.StringVar(&f.spec.Entry, "entry", "", "`EXPORT` to call (default the worker's)")
	flags.StringVar(&f.init, "init", "", "`TEXT` that the guest gets as input, or @FILE to read it from")
	flags.StringArrayVar(&f.labels, "label", nil, "`KEY=VALUE` for people; may be repeated")
	flags.Var(&f.when, "restart", "`WHEN` to restart it: never, on_failure or always (default never)")
	flags.Var(&f.initial, "restart-initial", "`DURATION` before the first restart, doubled for each further one (default 1s)")
	flags.Var(&f.max, "restart-max", "longest `DURATION` before a restart (default 1m)")
	flags.IntVar(&f.spec.Restart.Intensity, "restart-intensity", 0, "`NUMBER` of restarts within --restart-within after which it fails permanently (default 5)")
	flags.Var(&f.within, "restart-within", "`DURATION` in which restarts are counted (default 1m)")
	complete(cmd, "restart", f.when.names...)
	return cmd
}

// settle completes and checks the spec.
func (f *fiberFlags) settle(e *env, worker string) (err error) {
	s := &f.spec
	s.Worker = worker
	if s.ID == "" {
		return usagef("--id is missing")
	}
	s.Restart.When = jobhost.RestartWhen(f.when.value)
	s.Restart.Initial, s.Restart.Max, s.Restart.Within = jobhost.Duration(f.initial), jobhost.Duration(f.max), jobhost.Duration(f.within)
	if s.Labels, err = labels(f.labels); err != nil {
		return err
	}
	s.Init = []byte(f.init)
	if name, isFile := strings.CutPrefix(f.init, "@"); isFile {
		file, err := e.open(name, true)
		if err != nil {
			return err
		}
		defer file.Close()
		if s.Init, err = readPayload(file, jobhost.MaxFiberMessage); err != nil {
			return err
		}
	}
	return asUsage(s.Check())
}

func (e fiberEnv) start(ctx context.Context, spec jobhost.FiberSpec) error {
	server, err := e.server()
	if err != nil {
		return err
	}
	f, err := server.StartFiber(ctx, spec)
	if err != nil {
		return err
	}
	if e.wantsJSON() {
		return e.print(&f)
	}
	t := e.newTable()
	t.row(f.ID)
	t.flush()
	return nil
}

func newFiberSendCommand(e fiberEnv) *cobra.Command {
	wait := false
	cmd := &cobra.Command{
		Use:   "send ID [MESSAGE…|-]",
		Short: "Send a fiber messages",
		Long: `Send messages to a fiber: the arguments, or with - the lines of stdin, each as it
comes. Lines wait for room in the fiber's queue, arguments only with --wait.`,
		Example: `  jobhost fiber send lobby "ann: hello"
  jobhost fiber send lobby one two three --wait
  tail -f access.log | jobhost fiber send watcher -`,
		Args: func(_ *cobra.Command, args []string) error {
			return exactly("ID", "MESSAGE")(nil, args[:min(len(args), 2)])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			server, err := fiberSubject.server(e.env, args[0])
			if err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			if len(args) == 2 && args[1] == "-" {
				return e.sendLines(ctx, server, args[0])
			}
			for _, message := range args[1:] {
				if err := server.SendFiber(ctx, args[0], []byte(message), wait); err != nil {
					return err
				}
			}
			return nil
		},
		ValidArgsFunction: fiberSubject.complete(e.env),
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait for room in the fiber's queue")
	return cmd
}

// sendLines sends the lines of stdin.
func (e fiberEnv) sendLines(ctx context.Context, server jobhost.FiberTalker, id string) error {
	for lines := newLineReader(e.stdin, jobhost.MaxFiberMessage); ; {
		line, err := lines.next()
		if err != nil {
			return endOfLines(err)
		}
		if err := server.SendFiber(ctx, id, bytes.Clone(line), true); err != nil {
			return err
		}
	}
}
