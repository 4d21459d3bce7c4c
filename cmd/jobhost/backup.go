package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/manifest"
)

// storeEnv is env for the commands about a store that no host uses.
type storeEnv struct{ *env }

func newBackupCommand(e storeEnv) *cobra.Command {
	return &cobra.Command{
		Use:   "backup DIR",
		Short: "Copy the store into a directory, also while the host runs",
		Long: `Copy the store of the manifest into a directory, also while the host runs: the
copy holds everything that was acknowledged before it began, and the host keeps
running. Its pages are checked before it gets its name, then its rows: damaged
rows of the store are listed, and the exit code is 1.

The command reads the store's files itself, so it runs where they are. With it
come the payloads and results in payload stores that are folders, by hard links
where the file system can. Nothing else is copied: not the manifest, the plugins,
the API's token and the keys of payloads, nor what is in S3 or Redis. Jobs hold
their payloads, so keep the copy as private as the store.`,
		Example: `  jobhost backup /var/backups/jobhost/2026-02-03`,
		Args:    exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			e.keepPrivate()
			m, err := e.manifest()
			if err != nil {
				return err
			}
			damages, err := backupStore(cmd.Context(), m, e.path(args[0]))
			if err != nil {
				return err
			}
			if err := e.tell("backup", args[0], ""); err != nil || damages.Rows == 0 {
				return err
			}
			e.tellDamages(&damages)
			return &jobhost.Error{
				Code:    jobhost.CodeDamaged,
				Message: fmt.Sprintf("the backup is made, and %d rows of the store are not what was written", damages.Rows),
				Hint:    "keep older backups, which may have them; to put things right: docs/operations.md#rows",
			}
		},
	}
}

func newRestoreCommand(e storeEnv) *cobra.Command {
	replace, takes := false, false
	cmd := &cobra.Command{
		Use:   "restore DIR",
		Short: "Replace the store by a backup, while the host is stopped",
		Long: `Replace the store of the manifest by a backup. The host must be stopped. The
backup is checked first and is not changed; one of a newer jobhost is refused.
An existing store is kept under another name. Payloads of the backup are added
to the existing ones.

The host that the backup is of may be alive, as with a drill or a copy for
tests. So the restored one reads the payloads and results that it refers to in
S3, Redis and folders, and never removes them. If the original is gone and this
one goes on in its place, say --take-over: with a DIR, or without one for a store
that was restored before.`,
		Example: `  jobhost restore /var/backups/jobhost/2026-02-03
  jobhost restore /var/backups/jobhost/2026-02-03 --replace --take-over
  jobhost restore --take-over`,
		Args: func(cmd *cobra.Command, args []string) error {
			if takes && len(args) == 0 {
				return nil
			}
			return exactly("DIR")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			e.keepPrivate()
			m, err := e.manifest()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return e.takeOver(cmd.Context(), m)
			}
			kept, err := restoreStore(cmd.Context(), m, e.path(args[0]), replace, takes)
			if err != nil {
				return err
			}
			if !takes {
				e.note("the payloads of before are read and never removed; if the original is gone: jobhost restore --take-over")
			}
			return e.tell("restored", m.Host.Store.Dir, kept)
		},
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "keep an existing store under another name")
	cmd.Flags().BoolVar(&takes, "take-over", false, "the original is gone: also remove its payloads when no job needs them")
	return cmd
}

// takeOver lets the store that is there remove payloads of before it was restored.
func (e storeEnv) takeOver(ctx context.Context, m *manifest.Manifest) error {
	origins, err := takeOver(ctx, m)
	if err != nil {
		return fmt.Errorf("take over: %w", err)
	}
	if e.wantsJSON() {
		return e.json(map[string]any{"taken_over": m.Host.Store.Dir, "origins": origins})
	}
	if origins == 0 {
		e.note("it has left no payloads to another host")
	}
	_, err = fmt.Fprintf(e.stdout, "taken over %s\n", printable(m.Host.Store.Dir))
	return err
}

// manifest reads the manifest for its store, which must be files. It may run where the
// plugins and secrets of the host aren't at hand, such as in a nightly job.
func (e storeEnv) manifest() (*manifest.Manifest, error) {
	m, err := manifest.LoadStores(e.manifestPath())
	switch {
	case err != nil:
	case m.Host.Store.Driver == manifest.Postgres:
		err = &jobhost.Error{
			Code: jobhost.CodeInvalid, Field: "host.store",
			Message: "the store of the manifest is a PostgreSQL, whose files are not this program's", Hint: "back it up and restore it with its own tools, such as pg_dump",
		}
	case m.Host.Store.Dir == "":
		err = &jobhost.Error{
			Code: jobhost.CodeInvalid, Field: "host.store",
			Message: "the store of the manifest is in memory", Hint: `set host.store to "sqlite:FOLDER"`,
		}
	}
	return m, err
}

func (e storeEnv) tell(what, dir, kept string) error {
	if e.wantsJSON() {
		return e.json(map[string]string{what: dir, "kept": kept})
	}
	if kept != "" {
		e.note("what was there is kept as %s", kept)
	}
	_, err := fmt.Fprintf(e.stdout, "%s %s\n", what, printable(dir))
	return err
}
