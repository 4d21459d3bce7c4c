package main

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

func newKVCommand(e *env) *cobra.Command {
	return newGroup("kv", "Look at the keys and values of workers, and change them",
		newKVListCommand(e), newKVGetCommand(e), newKVSetCommand(e), newKVRemoveCommand(e))
}

// keyOf checks the arguments WORKER KEY.
func keyOf(args []string) (worker, key string, err error) {
	if err := jobhost.CheckWorker(args[0]); err != nil {
		return "", "", asUsage(err)
	}
	return args[0], args[1], asUsage(jobhost.CheckKey(args[1]))
}

func newKVGetCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "get WORKER KEY",
		Short: "Print the value of a key",
		Long: `Print the value of a key, as it is. With -o json it is what is known of the
key, with the value as base64.`,
		Example: `  jobhost kv get dedupe seen/42
  jobhost kv get dedupe seen/42 -o json`,
		Args: exactly("WORKER", "KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			worker, key, err := keyOf(args)
			if err != nil {
				return err
			}
			return e.getKey(cmd.Context(), worker, key)
		},
		ValidArgsFunction: completeWorkers(e),
	}
}

// keyWithValue is what kv get prints as JSON.
type keyWithValue struct {
	jobhost.Key
	Value []byte `json:"value_base64"`
}

func (e *env) getKey(ctx context.Context, worker, name string) error {
	server, err := e.server()
	if err != nil {
		return err
	}
	key, value, err := server.KeyValue(ctx, worker, name)
	if err != nil {
		return err
	}
	if e.wantsJSON() {
		return e.json(keyWithValue{key, value})
	}
	return e.writeBytes("the value", "write it to a file: jobhost kv get WORKER KEY > FILE", value, asIs)
}

func newKVSetCommand(e *env) *cobra.Command {
	var ttl duration
	cmd := &cobra.Command{
		Use:   "set WORKER KEY VALUE",
		Short: "Set a key to a value",
		Long: `Set a key to a value: the argument, the content of @FILE, or stdin for -.
Attempts that have read the key and depend on it fail with a conflict and run
again.`,
		Example: `  jobhost kv set dedupe mode strict
  jobhost kv set dedupe list @list.txt --ttl 24h`,
		Args: exactly("WORKER", "KEY", "VALUE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			worker, key, err := keyOf(args)
			if err != nil {
				return err
			}
			return e.setKey(cmd.Context(), worker, key, args[2], time.Duration(ttl))
		},
		ValidArgsFunction: completeWorkers(e),
	}
	cmd.Flags().Var(&ttl, "ttl", "let the key go after `DURATION` (default never)")
	return cmd
}

func (e *env) setKey(ctx context.Context, worker, key, source string, ttl time.Duration) error {
	in, err := e.payload(source)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	value, err := readPayload(in, mostPayload)
	if err != nil {
		return err
	}
	server, err := e.server()
	if err != nil {
		return err
	}
	return server.SetKey(ctx, worker, key, value, ttl)
}

func newKVRemoveCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "rm WORKER KEY…",
		Short:   "Remove keys",
		Example: `  jobhost kv rm dedupe seen/42 seen/43`,
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, key := range args[1:] {
				if _, _, err := keyOf([]string{args[0], key}); err != nil {
					return err
				}
			}
			server, err := e.server()
			if err != nil {
				return err
			}
			for _, key := range args[1:] {
				if err := server.DeleteKey(cmd.Context(), args[0], key); err != nil {
					return err
				}
			}
			return nil
		},
		ValidArgsFunction: completeWorkers(e),
	}
}

func newKVListCommand(e *env) *cobra.Command {
	filter, all := jobhost.KeyFilter{}, false
	cmd := &cobra.Command{
		Use:   "ls WORKER [PREFIX]",
		Short: "List the keys of a worker, or those that begin with PREFIX",
		Example: `  jobhost kv ls dedupe
  jobhost kv ls dedupe seen/ --all -o json`,
		Args: between(1, "WORKER", "PREFIX"),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter.Worker = args[0]
			if len(args) == 2 {
				filter.Prefix = args[1]
			}
			return e.listKeys(cmd.Context(), filter, all)
		},
		ValidArgsFunction: completeWorkers(e),
	}
	cmd.Flags().IntVar(&filter.Limit, "limit", 50, "`NUMBER` of keys to list at most")
	cmd.Flags().BoolVar(&all, "all", false, "list all, whatever the limit")
	return cmd
}

func (e *env) listKeys(ctx context.Context, filter jobhost.KeyFilter, all bool) error {
	left := filter.Limit
	if left < 1 && !all {
		return usagef("--limit %d is not at least 1", left)
	}
	server, err := e.server()
	if err != nil {
		return err
	}
	t := e.newTable()
	if !e.wantsJSON() {
		t.row("KEY", "SIZE", "VERSION", "CHANGED", "EXPIRES")
	}
	for {
		filter.Limit = jobhost.MaxPage
		if !all {
			filter.Limit = min(left, jobhost.MaxPage)
		}
		if err := filter.Check(); err != nil {
			return asUsage(err)
		}
		page, err := server.Keys(ctx, filter)
		if err != nil {
			return err
		}
		for i := range page.Keys {
			if err := e.showKey(t, &page.Keys[i]); err != nil {
				return err
			}
		}
		t.flush()
		left -= len(page.Keys)
		if page.Next == "" || page.Next == filter.Cursor || !all && left <= 0 {
			if page.Next != "" && e.stdout.terminal {
				e.note("there are more keys; --limit or --all shows them")
			}
			return e.stdout.failure()
		}
		filter.Cursor = page.Next
	}
}

func (e *env) showKey(t *table, k *jobhost.Key) error {
	if e.wantsJSON() {
		return e.json(k)
	}
	t.row(k.Name, size(k.Size), strconv.FormatInt(k.Version, 10), e.when(k.ChangedAt), e.whenever(k.ExpiresAt))
	return nil
}
