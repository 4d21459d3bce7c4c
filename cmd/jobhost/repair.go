package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost/internal/sqlitedb"
)

func newRepairCommand(e storeEnv) *cobra.Command {
	trust := false
	cmd := &cobra.Command{
		Use:   "repair DIR",
		Short: "Bring what can be read of a damaged store into a directory",
		Long: `Read what can be read of the damaged store of the manifest, and write it into a
new store in a directory. The host must be stopped. The damaged store is not
changed. The command reports pages that are not what jobhost wrote, rows that have a part
on such a page, what is wrong with the log, and rows that are there and not what was
written: those stay, and the host tells of each when it is read. Counters are computed again. A backup is better, if there is one
that is not too old: when pages or the end of the log are missing, a repaired store
may lack more than is reported.

Look at the result, then put it in the place of the store with jobhost restore.`,
		Example: `  jobhost repair /var/tmp/repaired
  jobhost restore /var/tmp/repaired --replace`,
		Args: exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			e.keepPrivate()
			m, err := e.manifest()
			if err != nil {
				return err
			}
			to := e.path(args[0])
			found, err := sqlitedb.Repair(cmd.Context(), m.Host.Store.Dir, to, sqlitedb.RepairOptions{Trust: trust, Schemas: schemas()})
			if err != nil {
				return err
			}
			return e.tellRepair(&found, to)
		},
	}
	cmd.Flags().BoolVar(&trust, "trust-pages", false, "use pages that are not what jobhost wrote, as after changes by another program")
	return cmd
}

func (e storeEnv) tellRepair(r *sqlitedb.Repaired, to string) error {
	if e.wantsJSON() {
		return e.json(map[string]any{
			"repaired": to, "log": r.Log, "pages": r.Pages, "bad_pages": r.Bad, "rows": r.Rows, "unreadable_rows": r.Unreadable,
			"damaged_rows": r.Damages.Rows, "damages": r.First,
		})
	}
	if r.Log != "" {
		e.note("the log: %s; %d pages of it are used", printable(r.Log), r.Frames)
	}
	e.note("%d of %d pages are not what jobhost wrote", len(r.Bad), r.Pages)
	e.note("%d rows could not be read as a whole", r.Unreadable)
	for _, table := range slices.Sorted(maps.Keys(r.Rows)) {
		e.note("%s: %d rows", printable(table), r.Rows[table])
	}
	e.tellDamages(&r.Damages)
	_, err := fmt.Fprintf(e.stdout, "repaired %s\nto put it in the place of the store: jobhost restore %s --replace\n", printable(to), printable(to))
	return err
}

// tellDamages names rows that are not what was written.
func (e storeEnv) tellDamages(d *sqlitedb.Damages) {
	if d.Rows == 0 {
		return
	}
	e.note("%d damaged rows, which are not what was written:", d.Rows)
	for _, text := range d.First {
		e.note("  %s", printable(text))
	}
	if more := d.Rows - len(d.First); more > 0 {
		e.note("  and %d more", more)
	}
}
