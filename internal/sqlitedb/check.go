package sqlitedb

import (
	"context"
	"errors"
)

// CheckRows goes through the rows of a database, which others may be using, by what its
// schemas know of them, and calls found for each that is damaged. What a schema of
// another version holds is not looked at. Its own error is that of a file that can't
// be read: [Verify] says more.
func CheckRows(ctx context.Context, path string, schemas []Schema, found func(error)) (err error) {
	s, err := openSource(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.checkRows(ctx, schemas, found); err != nil && ctx.Err() == nil {
		return explainOpen(path, err)
	} else if err != nil {
		return err
	}
	return nil
}

// checkRows is [CheckRows] on an open connection.
func (c *conn) checkRows(ctx context.Context, schemas []Schema, found func(error)) error {
	c.db.SetInterrupt(ctx)
	defer c.db.SetInterrupt(context.Background())
	for i := range schemas {
		if schemas[i].Check == nil {
			continue
		}
		present, err := c.isPresent(&schemas[i])
		if err == nil && present {
			err = schemas[i].Check(c, found)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		}
	}
	return nil
}

// isPresent reports whether a schema is there in its present version.
func (c *conn) isPresent(s *Schema) (bool, error) {
	tables, err := c.number("SELECT count(*) FROM sqlite_schema WHERE name='schema'")
	if err != nil || tables == 0 {
		return false, err
	}
	have, err := c.number("SELECT coalesce(max(version),0) FROM schema WHERE name=" + quote(s.Name))
	return have == int64(len(s.Steps)), err
}

// shownRows bounds the damaged rows that are named.
const shownRows = 50

// Damages are rows that are not what was written.
type Damages struct {
	Rows  int      // how many there are
	First []string // what the first of them are
}

// Add adds the error of a row: it is what [CheckRows] calls.
func (d *Damages) Add(err error) {
	if d.Rows++; len(d.First) < shownRows {
		d.First = append(d.First, err.Error())
	}
}
