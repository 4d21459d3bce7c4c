package sqlitedb

import (
	"errors"
	"fmt"
	"maps"
	"slices"

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
	// Name identifies the package's part forever.
	Name string
	// Steps lead from nothing to the present version, which is their number.
	// A step that was released never changes.
	Steps []string
	// Check goes through the rows, of the present version, and calls found with an error
	// for each that is damaged: see [CheckRows]. Nil = they have no checksums.
	Check func(q Querier, found func(error)) error
	// Mend puts right what follows from other rows, such as counters, after [Repair]
	// has left some out; of the present version. Nil = there is nothing.
	Mend func(q Querier) error
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
		return errNewer(path, fmt.Sprintf("file layout %d, and this one knows %d", version, layout))
	}
	return nil
}

// Known are the names of all schemas that jobhost has. A file may have a part
// that its opener doesn't ask for, such as the states for one who only wants the
// jobs; a part with a name that is not here is of a newer jobhost.
func Known() []string { return []string{"queue", "effects", "workflow", "schedule", "state"} }

// refuseNewer refuses a file with parts that a newer jobhost wrote, before
// anything in it is changed.
func refuseNewer(c *conn, path string, schemas []Schema) error {
	versions, err := versionsOf(c)
	if err != nil {
		return explainOpen(path, err)
	}
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		i := slices.IndexFunc(schemas, func(s Schema) bool { return s.Name == name })
		switch {
		case i < 0 && len(schemas) > 0 && !slices.Contains(Known(), name):
			return errNewer(path, fmt.Sprintf("it has a part %.40q, which this one doesn't know", name))
		case i >= 0 && versions[name] > int64(len(schemas[i].Steps)):
			return errNewer(path, fmt.Sprintf("%s version %d, and this one knows %d", name, versions[name], len(schemas[i].Steps)))
		}
	}
	return nil
}

func errNewer(path, what string) error {
	return &jobhost.Error{
		Code:    jobhost.CodeInvalid,
		Message: fmt.Sprintf("%s was written by a newer jobhost: %s", path, what),
		Hint:    "run the newer jobhost, or restore a backup from before the upgrade",
	}
}

// pending returns the first schema that the file lacks steps of; "" = it is up
// to date, or so new that there is nothing in it yet.
func pending(c *conn, schemas []Schema) (name string, version int, err error) {
	versions, err := versionsOf(c)
	for i := range schemas {
		if want := len(schemas[i].Steps); len(versions) > 0 && versions[schemas[i].Name] < int64(want) {
			return schemas[i].Name, want, nil
		}
	}
	return "", 0, err
}

// versionsOf returns the versions of the schemas in a file.
func versionsOf(c *conn) (map[string]int64, error) {
	versions := map[string]int64{}
	kept, err := c.number("SELECT count(*) FROM sqlite_schema WHERE name='schema'")
	if kept == 0 || err != nil {
		return versions, err
	}
	s := c.Stmt("SELECT name, version FROM schema")
	for s.Step() {
		versions[s.ColText(0)] = s.ColInt(1)
	}
	return versions, s.Done()
}

// migrate applies the steps that the file lacks, each in a transaction; it is not
// newer than they are.
func migrate(c *conn, path string, schemas []Schema) error {
	if err := bookkeeping(c); err != nil {
		return explainOpen(path, fmt.Errorf("set up schema: %w", err))
	}
	for _, schema := range schemas {
		have, err := c.number("SELECT coalesce(max(version),0) FROM schema WHERE name=" + quote(schema.Name))
		if err != nil {
			return explainOpen(path, err)
		}
		for i := int(have); i < len(schema.Steps); i++ {
			if err := step(c, schema, i); err != nil {
				return explainOpen(path, fmt.Errorf("migrate %s to version %d: %w", schema.Name, i+1, err))
			}
		}
	}
	return nil
}

// bookkeeping makes an empty file jobhost's. One that is takes no write, for which
// there may be no room.
func bookkeeping(c *conn) error {
	if version, err := c.number("PRAGMA user_version"); err != nil || version == layout {
		return err
	}
	return c.transaction(fmt.Sprintf(`
		CREATE TABLE IF NOT EXISTS schema(name TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
		PRAGMA application_id=%d; PRAGMA user_version=%d`, applicationID, layout))
}

func step(c *conn, schema Schema, i int) error {
	return c.transaction(fmt.Sprintf("%s;\nINSERT OR REPLACE INTO schema(name, version) VALUES(%s, %d)",
		schema.Steps[i], quote(schema.Name), i+1))
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
	c.forgetFault()
	stmt, _, err := c.db.Prepare(sql)
	if err != nil {
		return 0, c.cause(err)
	}
	var n int64
	if stmt.Step() {
		n = stmt.ColumnInt64(0)
	}
	err = stmt.Err()
	_ = stmt.Close() // repeats the error of Step
	if err != nil {
		err = c.cause(err)
	}
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
