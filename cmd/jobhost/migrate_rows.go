package main

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/pgqueue"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// filling is the single change that fills all tables, so that it is made as a whole or not at all. It is made again if the
// connection is lost. It implements [pgdb.Change].
type filling struct {
	*move
	ctx  context.Context // of the command
	done chan error
}

// Size implements [pgdb.Change].
func (f *filling) Size() (ops, bytes int) { return 1, 0 }

// Done implements [pgdb.Change].
func (f *filling) Done(err error) { f.done <- err }

// Apply implements [pgdb.Change].
func (f *filling) Apply(tx *pgdb.Tx) error {
	s := tx.Direct()
	if s == nil {
		return nil
	}
	// The server may have default limits, which this long transaction would exceed.
	if _, err := s.Exec("SELECT set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true)"); err != nil {
		return err
	}
	if err := refuseOccupied(s); err != nil {
		return err
	}
	f.begin()
	for _, e := range exports() {
		if err := f.fill(s, &e); err != nil {
			return err
		}
	}
	if err := f.refuseDamaged(); err != nil {
		return err
	}
	next, err := sqlitequeue.NextKey(f.source)
	if err != nil {
		return f.fail(err)
	}
	if err := pgqueue.FinishImport(s, next); err != nil {
		return err
	}
	token, err := f.apiToken()
	if err != nil || token == nil {
		return f.fail(err)
	}
	f.moved.Token = true
	return s.SetSecret("token", token)
}

// errSource stands for an error of the source: see [move.fail].
var errSource = errors.New("read the store")

// fail keeps an error of the source and returns errSource in its place. Otherwise pgdb could take it for a lost connection, and
// make the change again.
func (v *move) fail(err error) error {
	if err == nil {
		return nil
	}
	v.failure = err
	return errSource
}

// because returns the error that was kept if err is errSource, and otherwise err.
func (v *move) because(err error) error {
	if errors.Is(err, errSource) {
		return v.failure
	}
	return err
}

// begin resets the counts for another run of Apply.
func (v *move) begin() {
	v.moved.Rows, v.moved.Token, v.moved.Texts, v.moved.damages = map[string]int64{}, false, 0, sqlitedb.Damages{}
}

// refuseDamaged refuses a store with rows that are not what was written.
func (v *move) refuseDamaged() error {
	d := &v.moved.damages
	if d.Rows == 0 {
		return nil
	}
	return &jobhost.Error{
		Code: jobhost.CodeDamaged, Message: fmt.Sprintf("%d rows of the store are not what was written", d.Rows),
		Hint: "nothing was copied. Let a host on the store remove or change what is named above, and try again: docs/operations.md#rows",
	}
}

// fill replaces the rows of a table, which only a host without jobs can have written, and compares the result with the source.
func (f *filling) fill(s *pgdb.Session, e *sqlitedb.Export) error {
	if _, err := s.Exec("DELETE FROM jobhost." + e.Table); err != nil {
		return err
	}
	names := make([]string, len(e.Columns))
	for i := range e.Columns {
		names[i] = e.Columns[i].Name
	}
	read, err := f.read(f.ctx, e, func(next func() ([]any, error)) error {
		_, err := s.Copy(e.Table, names, next)
		return err
	})
	if err != nil {
		return fmt.Errorf("copy table %s: %w", e.Table, err)
	}
	there, err := sumsOf(s, e)
	if err != nil {
		return err
	}
	if !slices.Equal(read.sums, there.sums) || read.rows != there.rows {
		return &jobhost.Error{
			Code:    jobhost.CodeInternal,
			Message: fmt.Sprintf("table %s in the database is not what was copied: %d rows were, with the sums %v, and there are %d, with %v", e.Table, read.rows, read.sums, there.rows, there.sums),
		}
	}
	return nil
}

// read passes the rows of a table on to take, and returns their tally.
func (v *move) read(ctx context.Context, e *sqlitedb.Export, take func(next func() ([]any, error)) error) (tally, error) {
	rows := v.source.Rows(e, v.moved.damages.Add)
	read := tally{sums: make([]int64, len(e.Columns))}
	defer func() { _ = rows.Close() }() // Next has returned its error
	err := take(func() ([]any, error) {
		if ctx.Err() != nil {
			return nil, v.fail(context.Cause(ctx))
		}
		row, err := rows.Next()
		if row == nil || err != nil {
			return nil, v.fail(err)
		}
		if err := v.clean(e, row); err != nil {
			return nil, v.fail(err)
		}
		read.add(row)
		return row, nil
	})
	v.moved.Rows[e.Table] = read.rows
	return read, err
}

// clean replaces characters that the database rejects in texts that are only shown. It refuses them in other texts, such as ids.
func (v *move) clean(e *sqlitedb.Export, row []any) error {
	for i := range row {
		was, ok := row[i].(string)
		if !ok {
			continue
		}
		is := pgqueue.CleanText(was)
		if is == was {
			continue
		}
		if !slices.Contains(e.Shown, e.Columns[i].Name) {
			return &jobhost.Error{
				Code: jobhost.CodeInvalid, Message: fmt.Sprintf("the %s %.80q in table %s has characters that PostgreSQL doesn't take", e.Columns[i].Name, was, e.Table),
				Hint: "let a host on the store remove it, and try again",
			}
		}
		row[i] = is
		v.moved.Texts++
	}
	return nil
}

// tally is the number of rows, and for each column the sum of its numbers or of the lengths of its texts, modulo 2^64.
type tally struct {
	rows int64
	sums []int64
}

func (t *tally) add(row []any) {
	t.rows++
	for i := range row {
		switch value := row[i].(type) {
		case int64:
			t.sums[i] += value
		case string:
			t.sums[i] += int64(len(value))
		case []byte:
			t.sums[i] += int64(len(value))
		case bool:
			if value {
				t.sums[i]++
			}
		}
	}
}

// sumsOf returns the tally of a table in the database.
func sumsOf(s *pgdb.Session, e *sqlitedb.Export) (t tally, err error) {
	terms := []string{"count(*)"}
	texts := make([]string, len(e.Columns))
	into := []any{&t.rows}
	for i, c := range e.Columns {
		name := pgx.Identifier{c.Name}.Sanitize()
		term := "sum(" + name + ")"
		switch c.Kind {
		case sqlitedb.Text:
			term = "sum(octet_length(convert_to(" + name + ", 'UTF8')))"
		case sqlitedb.Blob:
			term = "sum(octet_length(" + name + "))"
		case sqlitedb.Bool:
			term = "sum(" + name + "::int)"
		}
		terms, into = append(terms, "coalesce("+term+", 0)::text"), append(into, &texts[i])
	}
	if _, err := s.One(into, "SELECT "+strings.Join(terms, ", ")+" FROM jobhost."+e.Table); err != nil {
		return tally{}, err
	}
	mask := new(big.Int).SetUint64(1<<64 - 1)
	for _, text := range texts {
		n, ok := new(big.Int).SetString(text, 10)
		if !ok {
			return tally{}, fmt.Errorf("%q is no sum", text)
		}
		t.sums = append(t.sums, int64(n.And(n, mask).Uint64()))
	}
	return t, nil
}
