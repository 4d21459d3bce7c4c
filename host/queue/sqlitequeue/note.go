package sqlitequeue

import (
	"context"
	"fmt"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// schemaNotes keeps short texts by name: see [record.Note].
const schemaNotes = `CREATE TABLE note(name TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID`

// note keeps or removes a text.
func note(tx *sqlitedb.Tx, op *record.Note) error {
	if op.Text == "" {
		return tx.Stmt("DELETE FROM note WHERE name=?").Text(op.Name).Exec()
	}
	return tx.Stmt("INSERT INTO note(name, text, sum) VALUES(?,?,?) ON CONFLICT DO UPDATE SET text=excluded.text, sum=excluded.sum").
		Text(op.Name).Text(op.Text).Int(noteSum(op.Name, op.Text)).Exec()
}

// Notes implements [queue.Reader].
func (s *Store) Notes(ctx context.Context) (map[string]string, error) {
	notes := make(map[string]string)
	err := s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		st := r.Stmt("SELECT name, text, sum FROM note")
		for st.Step() {
			name, text := st.ColText(0), st.ColText(1)
			if !st.ColSum(2, noteSum(name, text)) {
				return sqlitedb.Damaged("the note %q", name)
			}
			notes[name] = text
		}
		return st.Done()
	})
	if err != nil {
		return nil, fmt.Errorf("read notes: %w", err)
	}
	return notes, nil
}

// MarkRestored notes in a copy of a store that it is one: see [record.NoteRestored].
// A store of a jobhost that kept no notes has nothing that this is about.
func MarkRestored(q sqlitedb.Querier) error {
	s := q.Stmt("SELECT count(*) FROM sqlite_schema WHERE name='note'")
	there := s.Step() && s.ColInt(0) > 0
	if err := s.Done(); !there || err != nil {
		return err
	}
	return q.Stmt("INSERT OR REPLACE INTO note(name, text) VALUES(?,'1')").Text(record.NoteRestored).Exec()
}
