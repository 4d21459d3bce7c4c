package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/manifest"
)

func newBackupCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "backup DIR",
		Short: "Copy the store into a directory, also while the host runs",
		Long: `Copy the store of the manifest into a directory, also while the host runs: the
copy holds everything that was acknowledged before it began, and the host goes
on meanwhile. It is checked page by page before it gets its name.

The command reads the store's files itself, so it runs where they are. With it
come the payloads and results in payload stores that are folders, by hard links
where the file system can. Nothing else is copied: not the manifest, the plugins,
the API's token and the keys of payloads, nor what is in S3 or Redis. Jobs hold
their payloads, so keep the copy as private as the store.`,
		Example: `  jobhost backup /var/backups/jobhost/2026-02-03`,
		Args:    exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := e.storeManifest()
			if err != nil {
				return err
			}
			if err := backupStore(cmd.Context(), m, e.path(args[0])); err != nil {
				return err
			}
			return e.tellStore("backup", args[0], "")
		},
	}
}

func newRestoreCommand(e *env) *cobra.Command {
	replace := false
	cmd := &cobra.Command{
		Use:   "restore DIR",
		Short: "Put a backup in the place of the store, while the host is stopped",
		Long: `Put a backup in the place of the store of the manifest. The host must be
stopped. The backup is checked first, and stays where it is; one of a newer
jobhost is refused. A store that is there is kept under another name. Payloads
of the backup are added to those that are there.`,
		Example: `  jobhost restore /var/backups/jobhost/2026-02-03
  jobhost restore /var/backups/jobhost/2026-02-03 --replace`,
		Args: exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := e.storeManifest()
			if err != nil {
				return err
			}
			kept, err := restoreStore(cmd.Context(), m, e.path(args[0]), replace)
			if err != nil {
				return err
			}
			return e.tellStore("restored", m.Host.Store.Dir, kept)
		},
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "put a store that is there aside, under another name")
	return cmd
}

// storeManifest reads the manifest for its store, which must be files.
func (e *env) storeManifest() (*manifest.Manifest, error) {
	m, err := manifest.Load(e.manifestPath())
	if err == nil && m.Host.Store.Dir == "" {
		err = &jobhost.Error{
			Code: jobhost.CodeInvalid, Field: "host.store",
			Message: "the store of the manifest is in memory", Hint: `set host.store to "sqlite:FOLDER"`,
		}
	}
	return m, err
}

func (e *env) tellStore(what, dir, kept string) error {
	if e.wantsJSON() {
		return e.json(map[string]string{what: dir, "kept": kept})
	}
	if kept != "" {
		e.note("what was there is kept as %s", kept)
	}
	_, err := fmt.Fprintf(e.stdout, "%s %s\n", what, printable(dir))
	return err
}
