package sqlitedb

import (
	"github.com/ncruces/go-sqlite3"
)

// Querier is what Tx and Reader have in common: prepared statements.
type Querier interface {
	// Stmt returns the statement of that text, prepared once per connection
	// and ready to be bound. Two uses of one text must not overlap.
	Stmt(sql string) *Stmt
}

// conn is a connection with its prepared statements.
type conn struct {
	db    *sqlite3.Conn
	stmts map[string]*Stmt
}

// Stmt implements [Querier].
func (c *conn) Stmt(sql string) *Stmt {
	s := c.stmts[sql]
	if s == nil {
		s = c.prepare(sql)
	}
	if s.busy {
		_ = s.Done()
	}
	s.param = 0
	s.err = nil
	return s
}

func (c *conn) prepare(sql string) *Stmt {
	stmt, _, err := c.db.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return &Stmt{broken: err}
	}
	s := &Stmt{stmt: stmt}
	c.stmts[sql] = s
	return s
}

// exec runs statements that return nothing.
func (c *conn) exec(sql string) error {
	c.forgetFault()
	if err := c.db.Exec(sql); err != nil {
		return c.cause(err)
	}
	return nil
}

// reset ends the statements that were left half-way.
func (c *conn) reset() {
	for _, s := range c.stmts {
		if s.busy {
			_ = s.Done()
		}
	}
}

func (c *conn) close() error {
	for _, s := range c.stmts {
		_ = s.stmt.Close() // repeats the error of the last step
	}
	clear(c.stmts)
	return c.db.Close()
}

// Stmt is a prepared statement. Binding calls fill its parameters from the
// first to the last, starting over each time, and can be chained; the first error is
// kept and returned by Exec and Done. With rows:
//
//	s := q.Stmt("SELECT seq FROM job WHERE worker=?").Int(7)
//	for s.Step() {
//		use(s.ColInt(0))
//	}
//	return s.Done()
type Stmt struct {
	stmt   *sqlite3.Stmt
	param  int
	err    error
	broken error // it could not be prepared
	busy   bool  // between the first Step and the end
}

// bind notes the error of binding a parameter.
func (s *Stmt) bind(err error) *Stmt {
	if err != nil && s.err == nil {
		s.err = err
	}
	return s
}

// Int binds an integer.
func (s *Stmt) Int(v int64) *Stmt {
	if s.stmt == nil {
		return s
	}
	s.param++
	return s.bind(s.stmt.BindInt64(s.param, v))
}

// Text binds a string, also an empty one.
func (s *Stmt) Text(v string) *Stmt {
	if s.stmt == nil {
		return s
	}
	s.param++
	return s.bind(s.stmt.BindText(s.param, v))
}

// TextOrNull binds a string, an empty one as NULL, which takes no room.
func (s *Stmt) TextOrNull(v string) *Stmt {
	if v == "" {
		return s.Null()
	}
	return s.Text(v)
}

// Blob binds bytes, copying them; none are an empty blob.
func (s *Stmt) Blob(v []byte) *Stmt {
	if s.stmt == nil {
		return s
	}
	s.param++
	return s.bind(s.stmt.BindBlob(s.param, v))
}

// Null binds NULL.
func (s *Stmt) Null() *Stmt {
	if s.stmt == nil {
		return s
	}
	s.param++
	return s.bind(s.stmt.BindNull(s.param))
}

// Exec runs the statement to its end.
func (s *Stmt) Exec() error {
	if err := s.fault(); err != nil {
		return err
	}
	return s.stmt.Exec()
}

// Step moves to the next row, the first at first. It returns false at the end
// and on errors, which Done returns.
func (s *Stmt) Step() bool {
	if s.fault() != nil {
		return false
	}
	s.busy = true
	if s.stmt.Step() {
		return true
	}
	s.err = s.stmt.Err()
	s.busy = false
	_ = s.stmt.Reset() // repeats the error of Step
	return false
}

// Done ends the statement, wherever it is, and returns its error.
func (s *Stmt) Done() error {
	if s.busy {
		s.busy = false
		if err := s.stmt.Reset(); err != nil && s.err == nil {
			s.err = err
		}
	}
	return s.fault()
}

func (s *Stmt) fault() error {
	if s.broken != nil {
		return s.broken
	}
	return s.err
}

// ColInt returns column i of the row, counted from 0, as an integer; NULL is 0.
func (s *Stmt) ColInt(i int) int64 { return s.stmt.ColumnInt64(i) }

// ColText returns column i as a string; NULL is "".
func (s *Stmt) ColText(i int) string { return string(s.stmt.ColumnRawText(i)) }

// ColBlob returns a copy of column i; NULL and an empty blob are nil.
func (s *Stmt) ColBlob(i int) []byte { return s.stmt.ColumnBlob(i, nil) }

// ColCopy copies the blob of column i into dst and returns its length.
func (s *Stmt) ColCopy(i int, dst []byte) int { return copy(dst, s.stmt.ColumnRawBlob(i)) }
