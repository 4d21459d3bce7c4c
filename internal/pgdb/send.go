package pgdb

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// sendConns is how many connections Send has at most, apart from those of reads: neither waits for the other.
const sendConns = 4

// Send runs statements as one message, which is one transaction, whether this host leads or not: it is for what needs
// no order and no fence. If the connection is lost, queue is called again and its statements are sent once more, while
// the first ones may still be under way, and so on until the server is there. So they must be such that running several
// times, at once or one after the other, is the same as running once.
func (db *DB) Send(ctx context.Context, queue func(b *pgx.Batch)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*statementTime, errSlow)
	defer cancel()
	err := retryWhileDown(ctx, db.send, func() error { return db.sendOnce(ctx, queue) })
	return explain(ctx, "send to PostgreSQL", err)
}

func (db *DB) sendOnce(ctx context.Context, queue func(b *pgx.Batch)) error {
	conn, err := db.send.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	b := &pgx.Batch{}
	queue(b)
	return conn.SendBatch(ctx, b).Close()
}
