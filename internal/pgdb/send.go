package pgdb

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// sendConns is how many connections Send uses at most. Reads have others, so that neither waits for the other.
const sendConns = 4

// Send runs statements as one message, which is one transaction. It works on any host, for what needs no order and no fence.
// If the connection is lost, queue is called again and its statements are sent again, perhaps while the first ones are
// still under way, for some seconds. So the statements must be idempotent, also when they run concurrently.
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
