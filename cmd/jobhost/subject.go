package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

// subject is a kind of thing on a host, of which commands name one.
type subject struct {
	noun    string // the group of its commands: "fiber"
	arg     string // of the command line: "ID"
	example string // a name, for help
	check   func(name string) error
	// names returns those there are, for the shell to offer; nil = it offers none.
	names func(ctx context.Context, server jobhost.Server) []string
}

// command makes a command about the one that the argument names.
func (s *subject) command(e *env, verb, short, long string, do func(ctx context.Context, server jobhost.Server, name string) error) *cobra.Command {
	if long != "" {
		long = short + ".\n\n" + long
	}
	return &cobra.Command{
		Use:     verb + " " + s.arg,
		Short:   short,
		Long:    long,
		Example: "  jobhost " + s.noun + " " + verb + " " + s.example,
		Args:    exactly(s.arg),
		RunE: func(cmd *cobra.Command, args []string) error {
			server, err := s.server(e, args[0])
			if err != nil {
				return err
			}
			return do(cmd.Context(), server, args[0])
		},
		ValidArgsFunction: s.complete(e),
	}
}

// server returns the server to ask about one, whose name is checked first.
func (s *subject) server(e *env, name string) (jobhost.Server, error) {
	if err := s.check(name); err != nil {
		return nil, asUsage(err)
	}
	return e.server()
}

// complete offers the names there are to the shell, for the first argument. After it the
// shell may offer files.
func (s *subject) complete(e *env) cobra.CompletionFunc {
	if s.names == nil {
		return cobra.NoFileCompletions
	}
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		server, err := e.server()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp // a shell can't show why there is nothing to offer
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(contextOf(cmd)), 2*time.Second)
		defer cancel()
		var names []string
		for _, name := range s.names(ctx, server) {
			if s.check(name) == nil { // the host could be a stranger's
				names = append(names, name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func contextOf(cmd *cobra.Command) context.Context {
	if ctx := cmd.Context(); ctx != nil {
		return ctx
	}
	return context.Background()
}
