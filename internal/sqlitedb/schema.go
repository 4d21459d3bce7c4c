package sqlitedb

import (
	"errors"
	"fmt"
	"os"

	"github.com/jobhost/jobhost"
)

// applicationID marks the file as jobhost's ("jhst"); file(1) and the sqlite3
// shell show it. layout is the user_version: how the versions of schemas are
// kept, which is all that every schema has to agree upon. 2 = pages have seals.
const (
	applicationID = 0x6a687374
	layout        = 2
)

// Schema is what one package keeps in the database. Packages share the file,
// so each has a version of its own.
type Schema struct {
	// Name identifies the package's part for ever.
	Name string
	// Steps lead from nothing to the present version, which is their number.
	// A step that was released never changes.
	Steps []string
}

// identify refuses files that are not jobhost's before anything is written.
func identify(c *conn, path string) error {
	id, err := c.number("PRAGMA application_id")
	if err != nil {
		return explainOpen(path, err)
	}
	tables, err := c.number("SELECT count(*) FROM sqlite_schema")
	if err != nil {
		return explainOpen(path, err)
	}
	version, err := c.number("PRAGMA user_version")
	switch {
	case err != nil:
		return explainOpen(path, err)
	case id == 0 && tables == 0 && version == 0:
		return nil // new
	case id != applicationID:
		return errForeign(path, "it is a database of another program")
	case version > layout:
		return errNewer(path, "file layout", version, layout)
	}
	return nil
}

// refuseNewer refuses a file with parts that a newer jobhost wrote, before
// anything in it is changed.
func refuseNewer(c *conn, path string, schemas []Schema) error {
	kept, err := c.number("SELECT count(*) FROM sqlite_schema WHERE name='schema'")
	for i := 0; kept > 0 && err == nil && i < len(schemas); i++ {
		var have int64
		schema := &schemas[i]
		have, err = c.number("SELECT coalesce(max(version),0) FROM schema WHERE name=" + quote(schema.Name))
		if have > int64(len(schema.Steps)) {
			return errNewer(path, schema.Name+" version", have, int64(len(schema.Steps)))
		}
	}
	if err != nil {
		return explainOpen(path, err)
	}
	return nil
}

func errNewer(path, what string, have, know int64) error {
	return &jobhost.Error{
		Code:    jobhost.CodeInvalid,
		Message: fmt.Sprintf("%s was written by a newer jobhost: %s %d, and this one knows %d", path, what, have, know),
		Hint:    "run the newer jobhost, or restore a backup from before the upgrade",
	}
}

// migrate applies the steps that the file lacks, each in a transaction; it is not
// newer than they are. The old state of a file is kept beside it, unless noBackup.
func migrate(c *conn, path string, noBackup bool, schemas []Schema) error {
	if err := bookkeeping(c); err != nil {
		return explainOpen(path, fmt.Errorf("set up schema: %w", err))
	}
	backedUp := noBackup
	for _, schema := range schemas {
		have, err := c.number("SELECT coalesce(max(version),0) FROM schema WHERE name=" + quote(schema.Name))
		if err != nil {
			return explainOpen(path, err)
		}
		if have > 0 && have < int64(len(schema.Steps)) && !backedUp {
			if err := backup(c, fmt.Sprintf("%s.before-%s-%d", path, schema.Name, len(schema.Steps))); err != nil {
				return err
			}
			backedUp = true
		}
		for i := int(have); i < len(schema.Steps); i++ {
			if err := step(c, schema, i); err != nil {
				return explainOpen(path, fmt.Errorf("migrate %s to version %d: %w", schema.Name, i+1, err))
			}
		}
	}
	return nil
}

// bookkeeping makes an empty file jobhost's.
func bookkeeping(c *conn) error {
	return c.transaction(fmt.Sprintf(`
		CREATE TABLE IF NOT EXISTS schema(name TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
		PRAGMA application_id=%d; PRAGMA user_version=%d`, applicationID, layout))
}

func step(c *conn, schema Schema, i int) error {
	return c.transaction(fmt.Sprintf("%s;\nINSERT OR REPLACE INTO schema(name, version) VALUES(%s, %d)",
		schema.Steps[i], quote(schema.Name), i+1))
}

// backup writes a copy of the database, unless there is one from an earlier try.
func backup(c *conn, path string) error {
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		return nil
	}
	// A copy that was cut short must not look like a backup: it gets its name when it is whole.
	part := path + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, os.ErrNotExist) {
		return explainPath(part, err)
	}
	if err := makePrivate(part); err != nil {
		return err
	}
	if err := c.exec("VACUUM INTO " + quote(part)); err != nil {
		return explainOpen(part, fmt.Errorf("back up before migrating: %w", err))
	}
	if err := os.Rename(part, path); err != nil {
		return explainPath(path, err)
	}
	return nil
}

// transaction runs statements all or not at all.
func (c *conn) transaction(sql string) error {
	err := c.exec("BEGIN IMMEDIATE;\n" + sql + ";\nCOMMIT")
	if err != nil && !c.db.GetAutocommit() {
		err = errors.Join(err, c.exec("ROLLBACK"))
	}
	return err
}

// number returns the first column of the first row, 0 without a row.
func (c *conn) number(sql string) (int64, error) {
	stmt, _, err := c.db.Prepare(sql)
	if err != nil {
		return 0, err
	}
	var n int64
	if stmt.Step() {
		n = stmt.ColumnInt64(0)
	}
	err = stmt.Err()
	_ = stmt.Close() // repeats the error of Step
	return n, err
}

// quote writes a string as SQL.
func quote(s string) string {
	out := []byte{'\''}
	for i := range len(s) {
		if s[i] == '\'' {
			out = append(out, '\'')
		}
		out = append(out, s[i])
	}
	return string(append(out, '\''))
}
