package pgqueue

import (
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/internal/pgdb"
)

// noteRows are the notes that a commit changes. It is a [pgdb.Member]. Notes are written each second, so they are part of the
// image: a statement by [pgdb.Tx.Direct] would empty that.
type noteRows struct {
	db      *pgdb.DB
	changed map[string]string // by name; "" = it is removed
}

func (n *noteRows) init(db *pgdb.DB) { n.db, n.changed = db, map[string]string{} }

// keep changes a note; an empty text removes it.
func (n *noteRows) keep(name, text string) { n.changed[name] = text }

// Read implements [pgdb.Member]. Notes are changed without having been read.
func (n *noteRows) Read(*pgx.Batch) {}

// Flush implements [pgdb.Member].
func (n *noteRows) Flush(b *pgx.Batch) error {
	var names, texts, gone []string
	for name, text := range n.changed {
		if text == "" {
			gone = append(gone, name)
			continue
		}
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		texts = append(texts, n.changed[name])
	}
	if len(names) > 0 {
		b.Queue(n.db.SQL("INSERT INTO jobhost.note (name, text) SELECT * FROM unnest($1::text[], $2::text[]) ON CONFLICT (name) DO UPDATE SET text=excluded.text"), names, texts)
	}
	if len(gone) > 0 {
		b.Queue(n.db.SQL("DELETE FROM jobhost.note WHERE name=ANY($1)"), gone)
	}
	return nil
}

// Flushed implements [pgdb.Member].
func (n *noteRows) Flushed() { clear(n.changed) }

// AfterCommit implements [pgdb.Member].
func (n *noteRows) AfterCommit() { clear(n.changed) }

// AfterRollback implements [pgdb.Member].
func (n *noteRows) AfterRollback() { clear(n.changed) }
