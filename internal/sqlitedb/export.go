package sqlitedb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jobhost/jobhost"
)

// Kind is what the values of a column are.
type Kind byte

// The kinds. NULL is the zero value of its column's kind.
const (
	Int  Kind = iota // int64
	Text             // string
	Blob             // []byte, never nil
	Bool             // bool, of a number
)

// Column is one of a table on its way to another database.
type Column struct {
	Name string // there
	Kind Kind
	SQL  string // what it is here; empty = it has the same name
}

// Columns reads a list such as "seq, name text, data blob, suspect bool": each is a name and, unless it is a number, a kind.
func Columns(list string) (columns []Column) {
	kinds := map[string]Kind{"": Int, "text": Text, "blob": Blob, "bool": Bool}
	for one := range strings.SplitSeq(list, ", ") {
		name, kind, _ := strings.Cut(one, " ")
		columns = append(columns, Column{Name: name, Kind: kinds[kind]})
	}
	return columns
}

// Export is a table of a store, as another database is to have it.
type Export struct {
	Table   string
	Columns []Column
	// Shown are the texts among the columns that people read and nothing is found by: they may be made such that
	// another database takes them.
	Shown []string
	// Sum is the column with the checksum; empty = there is none.
	Sum string
	// Check returns what is damaged of a row, for people, and may change the row; empty = nothing. It is called with whether
	// the checksum that Value returns is that of the row. Nil = there is nothing to look at.
	Check func(q Querier, row []any, whole func(sum int64) bool) (damaged string, err error)
}

// query is what reads the table.
func (e *Export) query() string {
	names := make([]string, 0, len(e.Columns)+1)
	for _, c := range e.Columns {
		if c.SQL == "" {
			c.SQL = c.Name
		}
		names = append(names, c.SQL)
	}
	if e.Sum != "" {
		names = append(names, e.Sum)
	}
	return "SELECT " + strings.Join(names, ", ") + " FROM " + e.Table
}

// Source is the database of a directory that no host uses, held for reading: no host can begin to use it, and nothing of
// it is changed. It is for one goroutine.
type Source struct {
	src  *source
	lock *lockFile
}

// OpenSource holds the database of a directory. One that is in use is a conflict; one that an older or newer jobhost has
// written is refused, as one whose log is damaged is.
func OpenSource(dir string, schemas []Schema) (_ *Source, err error) {
	path := filepath.Join(dir, FileName)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil, &jobhost.Error{
			Code: jobhost.CodeNotFound, Message: "there is no store in " + dir, Hint: "name the folder that has a " + FileName, Cause: err,
		}
	} else if err != nil {
		return nil, explainPath(path, err)
	}
	if err := refuseBrokenLog(dir); err != nil {
		return nil, err
	}
	s := &Source{}
	if s.lock, err = lockDir(dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.src, err = openSource(path); err != nil {
		return nil, err
	}
	if err := refuseNewer(s.src.conn, path, schemas); err != nil {
		return nil, err
	}
	part, version, err := pending(s.src.conn, schemas)
	switch {
	case err != nil:
		return nil, explainOpen(path, err)
	case part != "":
		return nil, &jobhost.Error{
			Code: jobhost.CodeInvalid, Message: fmt.Sprintf("%s was written by an older jobhost: %s is not at version %d yet", path, part, version),
			Hint: "start this jobhost on it once, which brings it up to date, and stop it again",
		}
	}
	return s, nil
}

// Close lets hosts use the database again.
func (s *Source) Close() (err error) {
	if s.src != nil {
		err = s.src.close()
		s.src = nil
	}
	s.lock.release()
	s.lock = nil
	return err
}

// Stmt implements [Querier].
func (s *Source) Stmt(sql string) *Stmt { return s.src.Stmt(sql) }

// ExportedRows are the rows of a table, one after the other.
type ExportedRows struct {
	source *Source
	export *Export
	found  func(error)
	stmt   *Stmt
	row    []any
}

// Rows returns the rows of a table. found is called with what of a row is damaged: such rows are left out.
func (s *Source) Rows(e *Export, found func(error)) *ExportedRows {
	return &ExportedRows{source: s, export: e, found: found, stmt: s.Stmt(e.query()), row: make([]any, len(e.Columns))}
}

// Next returns the next row, which the one after it overwrites; nil = there is none. A page that can't be read is an error.
func (r *ExportedRows) Next() ([]any, error) {
	for r.stmt.Step() {
		for i := range r.row {
			r.row[i] = r.stmt.col(i, r.export.Columns[i].Kind)
		}
		damaged, err := r.check()
		if err != nil {
			return nil, errors.Join(r.source.Explain(err), r.Close())
		}
		if damaged == "" {
			return r.row, nil
		}
		r.found(Damaged("%s", damaged))
	}
	return nil, r.source.Explain(r.stmt.Done())
}

func (r *ExportedRows) check() (damaged string, err error) {
	if r.export.Check == nil {
		return "", nil
	}
	return r.export.Check(r.source, r.row, func(sum int64) bool { return r.export.Sum == "" || r.stmt.ColSum(len(r.row), sum) })
}

// Close ends the reading, wherever it is.
func (r *ExportedRows) Close() error { return r.stmt.Done() }

// Explain turns damage that a statement has met into an error for people, and leaves other errors as they are.
func (s *Source) Explain(err error) error {
	if isDamage(err) {
		return explainRead(err)
	}
	return err
}

// col returns column i as what its kind says.
func (s *Stmt) col(i int, kind Kind) any {
	switch kind {
	case Text:
		return s.ColText(i)
	case Blob:
		if data := s.ColBlob(i); data != nil {
			return data
		}
		return []byte{}
	case Bool:
		return s.ColInt(i) != 0
	default:
		return s.ColInt(i)
	}
}
