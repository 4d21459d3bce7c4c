package sqlitedb

import (
	"context"
	"errors"

	"github.com/ncruces/go-sqlite3"
)

// CheckRows goes through the rows of a database that no program is writing to, by what its
// schemas know of them, and calls found for each that is damaged. What a schema of
// another version holds is not looked at. Its own error is that of a file that can't
// be read: [Verify] says more.
func CheckRows(ctx context.Context, path string, schemas []Schema, found func(error)) (err error) {
	c, err := (&DB{path: path}).connect(sqlite3.OPEN_READWRITE) // a reader of a log needs its index, which is a file
	if err != nil {
		return explainOpen(path, err)
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := identify(c, path); err != nil {
		return err
	}
	c.db.SetInterrupt(ctx)
	defer c.db.SetInterrupt(context.Background())
	if err := c.exec("PRAGMA query_only=1; BEGIN"); err != nil {
		return explainOpen(path, err)
	}
	for i := range schemas {
		have, err := c.number("SELECT coalesce(max(version),0) FROM schema WHERE name=" + quote(schemas[i].Name))
		if err == nil && schemas[i].Check != nil && have == int64(len(schemas[i].Steps)) {
			err = schemas[i].Check(c, found)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return explainOpen(path, err)
		}
	}
	return nil
}
