package main

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

// kvEnv is env for the commands about keys of workers.
type kvEnv struct{ *env }

func newKVCommand(e kvEnv) *cobra.Command {
	return newGroup("kv", "Show and change the keys and values of workers",
		newKVListCommand(e), newKVGetCommand(e), newKVSetCommand(e), newKVRemoveCommand(e))
}

// keyOf checks the arguments WORKER KEY.
func keyOf(args []string) (worker, key string, err error) {
	if err := jobhost.CheckWorker(args[0]); err != nil {
		return "", "", asUsage(err)
	}
	return args[0], args[1], asUsage(jobhost.CheckKey(args[1]))
}

func newKVGetCommand(e kvEnv) *cobra.Command {
	return &cobra.Command{
		Use:   "get WORKER KEY",
		Short: "Print the value of a key",
		Long: `Print the value of a key, exactly. With -o json print the key's record, with the
value as base64.`,
		Example: `  jobhost kv get dedupe seen/42
  jobhost kv get dedupe seen/42 -o json`,
		Args: exactly("WORKER", "KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			worker, key, err := keyOf(args)
			if err != nil {
				return err
			}
			return e.get(cmd.Context(), worker, key)
		},
		ValidArgsFunction: completeWorkers(e.env),
	}
}

// keyWithValue is what kv get prints as JSON.
type keyWithValue struct {
	jobhost.Key
	Value []byte `json:"value_base64"`
}

func (e kvEnv) get(ctx context.Context, worker, name string) error {
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
	return resultWriter(e).bytes("the value", "write it to a file: jobhost kv get WORKER KEY > FILE", value, asIs)
}

func newKVSetCommand(e kvEnv) *cobra.Command {
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
			return e.set(cmd.Context(), worker, key, args[2], time.Duration(ttl))
		},
		ValidArgsFunction: completeWorkers(e.env),
	}
	cmd.Flags().Var(&ttl, "ttl", "remove the key after `DURATION` (default never)")
	return cmd
}

func (e kvEnv) set(ctx context.Context, worker, key, source string, ttl time.Duration) error {
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

func newKVRemoveCommand(e kvEnv) *cobra.Command {
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
		ValidArgsFunction: completeWorkers(e.env),
	}
}

func newKVListCommand(e kvEnv) *cobra.Command {
	filter, l := jobhost.KeyFilter{}, &limits{}
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
			return e.list(cmd.Context(), filter, l)
		},
		ValidArgsFunction: completeWorkers(e.env),
	}
	l.register(cmd, "keys")
	return cmd
}

func (e kvEnv) list(ctx context.Context, filter jobhost.KeyFilter, l *limits) error {
	most, err := l.most()
	if err != nil {
		return err
	}
	if err := filter.Check(); err != nil {
		return asUsage(err)
	}
	server, err := e.server()
	if err != nil {
		return err
	}
	keys := listing[jobhost.Key]{
		things: "keys", columns: []string{"KEY", "SIZE", "VERSION", "CHANGED", "EXPIRES"},
		cells: func(k *jobhost.Key) []string {
			return []string{k.Name, size(k.Size), strconv.FormatInt(k.Version, 10), e.when(k.ChangedAt), e.whenever(k.ExpiresAt)}
		},
	}
	return keys.print(ctx, e.env, most, func(ctx context.Context, cursor string, limit int) ([]jobhost.Key, string, error) {
		filter.Cursor, filter.Limit = cursor, limit
		page, err := server.Keys(ctx, filter)
		return page.Keys, page.Next, err
	})
}
