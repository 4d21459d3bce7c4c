package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

// endOfLines is the error of reading lines, of which the end is none.
func endOfLines(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return fmt.Errorf("read lines: %w", err)
}

func newFiberWatchCommand(e fiberEnv) *cobra.Command {
	query := jobhost.FiberQuery{}
	cmd := &cobra.Command{
		Use:   "watch ID",
		Short: "Print what a fiber publishes until it ends",
		Long: `Print what a fiber publishes from now on, a line each, until it ends or the
command is interrupted. Control characters are escaped; -o json has the exact data.
The exit code tells whether the fiber completed.`,
		Example: `  jobhost fiber watch lobby
  jobhost fiber watch lobby --replay
  jobhost fiber watch lobby --after 42 -o json | jq -r .data`,
		Args: exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			server, err := fiberSubject.server(e.env, args[0])
			if err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			query.ID = args[0]
			return e.watch(ctx, server, query)
		},
		ValidArgsFunction: fiberSubject.complete(e.env),
	}
	cmd.Flags().BoolVar(&query.Replay, "replay", false, "begin with the outputs that the host still has")
	cmd.Flags().Uint64Var(&query.After, "after", 0, "begin after the output with this `NUMBER`, if the host still has it")
	return cmd
}

// watch prints what a fiber publishes.
func (e fiberEnv) watch(ctx context.Context, server jobhost.Server, query jobhost.FiberQuery) error {
	for o, err := range server.WatchFiber(ctx, query) {
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil // the user has seen enough
		case errors.Is(err, jobhost.ErrFiberEnded):
			return e.tellEnd(ctx, server, query.ID, err)
		default:
			return fmt.Errorf("watch fiber %s: %w", query.ID, err)
		}
		if e.wantsJSON() {
			err = e.json(wire.NewFiberOutput(o))
		} else {
			_, err = fmt.Fprintln(e.stdout, printable(string(o.Data)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tellEnd says how a fiber has ended, of which the end of a watch tells only that.
func (e fiberEnv) tellEnd(ctx context.Context, server jobhost.FiberRunner, id string, end error) error {
	f, err := server.Fiber(ctx, id)
	switch {
	case err != nil || !f.Status.Ended(): // it is forgotten, or there is another one
		return end
	case f.Status == jobhost.FiberCompleted:
		if !e.wantsJSON() {
			e.note("fiber %s has completed", id)
		}
		return nil
	}
	return &jobhost.Error{
		Code: jobhost.CodeConflict, Message: fmt.Sprintf("fiber %s has %s: %s", id, endedAs(f.Status), why(&f)),
		Hint: "jobhost fiber status " + id,
	}
}

func endedAs(s jobhost.FiberStatus) string {
	if s == jobhost.FiberKilled {
		return "been killed"
	}
	return string(s)
}

func why(f *jobhost.Fiber) string {
	if f.Failure == nil {
		return "nobody knows why"
	}
	return f.Failure.Code + ": " + clip(f.Failure.Message)
}
