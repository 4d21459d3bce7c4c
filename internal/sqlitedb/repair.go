package sqlitedb

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/sqlitedb/salvage"
	"github.com/jobhost/jobhost/internal/sqlitedb/sealed"
	"github.com/ncruces/go-sqlite3"
)

// Repaired is what [Repair] found, and what it could bring back.
type Repaired struct {
	Log        string         // what is wrong with the write-ahead log, "" = nothing
	Frames     int            // of the log that were used
	Pages      int            // of the database
	Bad        []uint32       // pages that are not what was written; they were not used
	Rows       map[string]int // that were brought back, by table
	Unreadable int            // rows of which a part was on such a page
	Damages                   // of what was brought back; it is there as it was found
}

// RepairOptions say how to repair.
type RepairOptions struct {
	// Trust lets pages be used, too, that are not what jobhost wrote, as after a change by another program.
	Trust bool
	// Schemas know which rows are damaged, and what follows from others.
	Schemas []Schema
}

// Repair reads all rows that can be read of the database of a directory that no host uses, and writes them into a
// new one in another directory, which must not hold one yet. The damaged one stays as it is. Rows whose
// content is damaged stay, since the host reports each when it is read, and goes on with the rest; they are reported.
func Repair(ctx context.Context, dir, to string, opts RepairOptions) (_ Repaired, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("repair: %w", err)
		}
	}()
	from, target := filepath.Join(dir, FileName), filepath.Join(to, FileName)
	if _, err := os.Stat(from); err != nil {
		return Repaired{}, explainPath(from, err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return Repaired{}, err
	}
	defer lock.release()
	if err := makeDir(to); err != nil {
		return Repaired{}, err
	}
	if err := refuseTaken(target); err != nil {
		return Repaired{}, err
	}
	r := &repair{dir: dir, image: target + ".damaged", part: target + ".part"}
	defer func() { err = errors.Join(err, r.clean()) }()
	for _, do := range []func() error{r.clean, r.copyAll, func() error { return r.fill(ctx, opts) }, func() error { return Verify(ctx, r.part, nil) }} {
		if err := do(); err != nil {
			return Repaired{}, err
		}
	}
	if err := errors.Join(syncFile(r.part), os.Rename(r.part, target), syncDir(to)); err != nil {
		return Repaired{}, explainPath(target, err)
	}
	return r.found, nil
}

// repair works on an image of a database: a copy with the good frames of its log in it.
type repair struct {
	dir, image, part string
	found            Repaired
}

func (r *repair) clean() error {
	var errs []error
	for _, path := range []string{r.image, r.image + witnessSuffix, r.part, r.part + "-journal", r.part + "-wal", r.part + "-shm"} {
		errs = append(errs, removeFile(path))
	}
	return errors.Join(errs...)
}

// copyAll makes the image and finds its bad pages.
func (r *repair) copyAll() (err error) {
	from := filepath.Join(r.dir, FileName)
	if err := copyFile(from, r.image); err != nil {
		return err
	}
	if _, err := os.Stat(from + witnessSuffix); err == nil {
		if err := copyFile(from+witnessSuffix, r.image+witnessSuffix); err != nil {
			return err
		}
	}
	file, err := systemDisk{}.OpenFile(r.image + witnessSuffix)
	if err != nil {
		return explainPath(r.image, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	witness, err := sealed.OpenWitness(file, bootID())
	if err != nil {
		return err
	}
	notes := sealed.NewNotes(witness, nil)
	if _, err := notes.Recall(); err != nil {
		return err
	}
	image, err := os.OpenFile(r.image, os.O_RDWR, 0)
	if err != nil {
		return explainPath(r.image, err)
	}
	defer func() { err = errors.Join(err, image.Close()) }()
	if err := r.applyLog(notes, witness, image); err != nil {
		return err
	}
	found, err := notes.Look(image)
	if err != nil {
		return err
	}
	for _, p := range found.Unknown {
		if p.Number > 1 { // without the first page nothing can be read; it is tried as it is
			r.found.Bad = append(r.found.Bad, p.Number)
		}
	}
	r.found.Pages = int(found.Pages)
	return nil
}

// applyLog writes the pages of the log into the image, as far as the log is good.
func (r *repair) applyLog(notes *sealed.Notes, witness *sealed.Witness, image *os.File) error {
	path := filepath.Join(r.dir, FileName+"-wal")
	f, _, err := systemDisk{}.Read(path)
	if err != nil {
		return explainPath(path, err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	mark := witness.Acknowledged()
	log, err := sealed.Scan(bufio.NewReaderSize(f, 1<<18), mark.Frames)
	if err != nil {
		return explainPath(path, err)
	}
	db := &DB{witness: witness, notes: notes}
	r.found.Log = db.damageOf(log, mark)
	if log.Committed == 0 || witness.Knows() && !witness.Recognizes(log.Generation) {
		return nil
	}
	if err := notes.Adopt(&log); err != nil {
		return err
	}
	r.found.Frames = log.Committed
	again, err := os.Open(path)
	if err != nil {
		return explainPath(path, err)
	}
	defer func() { _ = again.Close() }() // nothing was written
	return sealed.Apply(image, again, log)
}

// fill makes the new database from what can be read of the image.
func (r *repair) fill(ctx context.Context, opts RepairOptions) (err error) {
	image, err := os.Open(r.image)
	if err != nil {
		return explainPath(r.image, err)
	}
	defer func() { _ = image.Close() }() // nothing was written
	avoid := r.found.Bad
	if opts.Trust {
		avoid = nil
	}
	from, err := salvage.Open(image, avoid)
	if err != nil {
		return r.hopeless(err)
	}
	if err := makePrivate(r.part); err != nil {
		return err
	}
	c, err := (&DB{path: r.part}).connect(sqlite3.OPEN_READWRITE | sqlite3.OPEN_CREATE)
	if err != nil {
		return explainOpen(r.part, err)
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := shape(c, r.part, true); err != nil {
		return err
	}
	tables, rest, err := readSchema(from)
	if err != nil {
		return err
	}
	if len(tables) == 0 {
		return r.hopeless(errors.New("its list of tables can't be read"))
	}
	if err := c.exec("BEGIN"); err != nil {
		return err
	}
	r.found.Rows = map[string]int{}
	for _, t := range tables {
		if err := r.fillTable(ctx, c, from, t); err != nil {
			return fmt.Errorf("table %s: %w", t.name, err)
		}
	}
	for _, sql := range rest {
		if err := c.exec(sql); err != nil {
			return err
		}
	}
	r.found.Unreadable = from.Unreadable
	if err := c.mend(opts.Schemas); err != nil {
		return err
	}
	if err := c.checkRows(ctx, opts.Schemas, r.found.Add); err != nil {
		return err
	}
	return c.exec(fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d; COMMIT", applicationID, layout))
}

// mend lets the schemas put right what follows from rows that may be gone.
func (c *conn) mend(schemas []Schema) error {
	for i := range schemas {
		if schemas[i].Mend == nil {
			continue
		}
		present, err := c.isPresent(&schemas[i])
		if err == nil && present {
			err = schemas[i].Mend(c)
		}
		if err != nil {
			return fmt.Errorf("mend %s: %w", schemas[i].Name, err)
		}
	}
	return nil
}

func (r *repair) hopeless(err error) error {
	return &jobhost.Error{
		Code: jobhost.CodeUnavailable, Message: filepath.Join(r.dir, FileName) + " is damaged where it says what is in it", Cause: err,
		Hint: "restore a backup: jobhost restore",
	}
}

// table is a table of the damaged database.
type table struct {
	name, sql string
	root      uint32
}

// readSchema returns the tables, and the statements that make all else.
func readSchema(from *salvage.Database) (tables []table, rest []string, err error) {
	err = from.Rows(1, func(row salvage.Row) error {
		if len(row.Values) < 5 {
			return nil
		}
		kind, _ := row.Values[0].(string)
		name, _ := row.Values[1].(string)
		root, _ := row.Values[3].(int64)
		sql, _ := row.Values[4].(string)
		switch {
		case sql == "" || strings.HasPrefix(name, "sqlite_"):
		case kind == "table" && root > 0:
			tables = append(tables, table{name, sql, uint32(root)})
		default:
			rest = append(rest, sql)
		}
		return nil
	})
	return tables, rest, err
}

// fillTable makes a table and writes the rows into it that can be read.
func (r *repair) fillTable(ctx context.Context, c *conn, from *salvage.Database, t table) error {
	if err := c.exec(t.sql); err != nil {
		return err
	}
	columns, alias, err := c.columns(t.name)
	if err != nil {
		return err
	}
	return from.Rows(t.root, func(row salvage.Row) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n := min(len(row.Values), len(columns))
		names := make([]string, n)
		for i := range n {
			names[i] = `"` + columns[i] + `"`
		}
		s := c.Stmt(fmt.Sprintf("INSERT OR IGNORE INTO %s(%s) VALUES(%s)", quoteName(t.name), strings.Join(names, ","),
			strings.TrimSuffix(strings.Repeat("?,", n), ",")))
		for i, v := range row.Values[:n] {
			if i == alias {
				v = row.ID
			}
			s.value(v)
		}
		if err := s.Exec(); err != nil {
			return err
		}
		r.found.Rows[t.name] += int(c.db.Changes())
		return nil
	})
}

// columns returns the names of a table's columns in the order in which a row has them, and which one is the rowid; -1 = none.
func (c *conn) columns(name string) (columns []string, alias int, err error) {
	without, err := c.number("SELECT wr FROM pragma_table_list WHERE name=" + quote(name))
	if err != nil {
		return nil, 0, err
	}
	order := "cid"
	if without != 0 {
		order = "pk=0, pk, cid" // the key comes first
	}
	alias = -1
	s := c.Stmt("SELECT name, pk=1 AND type='INTEGER' COLLATE NOCASE AND (SELECT max(pk) FROM pragma_table_info(?1))=1 FROM pragma_table_info(?1) ORDER BY " + order).Text(name)
	for s.Step() {
		if without == 0 && s.ColInt(1) != 0 {
			alias = len(columns)
		}
		columns = append(columns, s.ColText(0))
	}
	return columns, alias, s.Done()
}

func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// value binds a value of any type.
func (s *Stmt) value(v any) {
	switch v := v.(type) {
	case int64:
		s.Int(v)
	case string:
		s.Text(v)
	case []byte:
		s.Blob(v)
	case float64:
		if s.stmt != nil {
			s.param++
			s.bind(s.stmt.BindFloat(s.param, v))
		}
	default:
		s.Null()
	}
}
