package main

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/internal/pgdb"
)

func newMigrateCommand(e *env) *cobra.Command {
	var check bool
	var from string
	var folders []string
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the tables of a shared database up to date, or move a store into it",
		Long: `Bring the tables of a shared database up to date.

A host does so itself when it starts and no other one is there. While others are, this
command does, before the hosts are replaced one by one: those of the version before go
on with the new tables. Stores on SQLite are brought up to date when a host starts.

With --check nothing is changed, and the exit status is 1 if there is something to do,
or if the tables are those of a newer jobhost.

With --from the store of a host on SQLite is copied into the database, in which there must
be nothing yet: jobs with their results and their place in the queue, dead letters, keys,
workflows, schedules, states, pauses, and the token of the API. Neither that host nor one
on the database may run. The store is only read, and each row is compared with its
checksum; the copy is there as a whole or not at all, so the command can be run
again. Payloads in a folder are copied into the payload store that has its name in the
manifest. With --check all is read and nothing is written.`,
		Example: `  jobhost migrate --check
  jobhost migrate
  jobhost migrate --from sqlite:./data
  jobhost migrate --from sqlite:./data --payloads local=/srv/payloads`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := manifest.Load(e.manifestPath())
			if err != nil {
				return err
			}
			if from == "" {
				return migrate(cmd.Context(), e, m, check)
			}
			return migrateFrom(cmd.Context(), e, m, migration{From: from, Folders: folders, Check: check})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&check, "check", false, "only say what there is to do")
	cmd.Flags().StringVar(&from, "from", "", "copy the store of a host on SQLite: `sqlite:DIR`")
	cmd.Flags().StringArrayVar(&folders, "payloads", nil, "folder of a payload store of that host, `NAME=DIR`; DIR/payloads is found by itself")
	return cmd
}

// migrate brings a database up to date; with check it only reports what there is to do.
func migrate(ctx context.Context, e *env, m *manifest.Manifest, check bool) error {
	if m.Host.Store.Driver != manifest.Postgres {
		return &jobhost.Error{
			Code: jobhost.CodeInvalid, Field: "host.store", Message: "this host shares its store with no other",
			Hint: "its tables are brought up to date when it starts",
		}
	}
	db, err := openDatabase(ctx, m, newLogger(e.stderr, slog.LevelWarn, m.Host.LogFormat), pgdb.Observer{})
	if err != nil {
		return err
	}
	defer db.Close()
	versions, err := db.Versions(ctx, sharedSchemas())
	if err != nil {
		return err
	}
	late := outdatedParts(versions)
	if !check && len(late) > 0 && len(newerParts(versions)) == 0 {
		if err := db.Migrate(ctx, sharedSchemas()); err != nil {
			return err
		}
	}
	if err := tellVersions(e, versions); err != nil {
		return err
	}
	if newer := newerParts(versions); len(newer) > 0 {
		return &jobhost.Error{
			Code: jobhost.CodeConflict, Message: fmt.Sprintf("%d of %d parts of the database are of a newer jobhost", len(newer), len(versions)),
			Hint: "hosts of this version that run go on with them, and none starts anew: replace this program by the newer one",
		}
	}
	if check && len(late) > 0 {
		return &jobhost.Error{
			Code: jobhost.CodeConflict, Message: fmt.Sprintf("%d of %d parts of the database are to be brought up to date", len(late), len(versions)),
			Hint: "jobhost migrate does that",
		}
	}
	return nil
}

// tellVersions prints the parts of a database with the version that they had, and the one that this program knows.
func tellVersions(e *env, versions []pgdb.Version) error {
	if e.wantsJSON() {
		type version struct {
			Part string `json:"part"`
			Had  int    `json:"had"`
			Want int    `json:"want"`
		}
		list := make([]version, len(versions))
		for i, v := range versions {
			list[i] = version{v.Name, v.Have, v.Want}
		}
		return jsonLines(e, list)
	}
	t := e.newTable("PART", "HAD", "WANT")
	for _, v := range versions {
		t.row(v.Name, strconv.Itoa(v.Have), strconv.Itoa(v.Want))
	}
	t.flush()
	return nil
}
