package pgpayload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobhost/jobhost/state/payload"
)

const (
	// pieceBytes is how much of an upload is kept in memory, and there may be an upload for each attempt. With 1 MiB writing is
	// 1.5 times as fast, but takes four times the memory.
	pieceBytes  = 256 << 10
	abortWithin = 10 * time.Second // timeout of Abort
)

// upload is an object in the making.
type upload struct {
	store  *Store
	ctx    context.Context // of Create
	key    string
	piece  []byte // not sent yet
	pieces int64  // that were sent
	tried  bool   // some of it may be in the database
	done   bool
}

// Create implements [payload.Store].
func (s *Store) Create(ctx context.Context, key string) (payload.Object, error) {
	if _, ok := payload.KeyTime(key); !ok {
		return nil, fmt.Errorf("%q is no key", key)
	}
	return &upload{store: s, ctx: ctx, key: key}, nil
}

// Write implements [payload.Object]. It sends a piece when more data follow: Commit sends the last one.
func (u *upload) Write(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	written := 0
	for len(p) > 0 {
		if len(u.piece) == pieceBytes {
			if err := u.send(); err != nil {
				return written, err
			}
		}
		n := min(len(p), pieceBytes-len(u.piece))
		u.piece = append(u.piece, p[:n]...)
		p, written = p[n:], written+n
	}
	return written, nil
}

// Statements of an upload. A piece is accepted only while the upload has a row in payload_partial that is not dead, and locks
// that row: a piece that arrives late, after its connection was lost, adds nothing to an upload that was removed meanwhile.
// The statements are idempotent: see [pgdb.DB.Send].
const (
	firstPiece = `WITH own AS (
			INSERT INTO jobhost.payload_partial AS p (key, written, dead) VALUES ($1, now(), false)
			ON CONFLICT (key) DO UPDATE SET written=now() WHERE NOT p.dead RETURNING key)
		INSERT INTO jobhost.payload_piece (key, n, data) SELECT key, $2, $3 FROM own
		ON CONFLICT (key, n) DO UPDATE SET data=excluded.data`
	nextPiece = `WITH own AS (
			UPDATE jobhost.payload_partial SET written=now() WHERE key=$1 AND NOT dead RETURNING key)
		INSERT INTO jobhost.payload_piece (key, n, data) SELECT key, $2, $3 FROM own
		ON CONFLICT (key, n) DO UPDATE SET data=excluded.data`
	// unsynced lets the server answer before the transaction is on disk. The log is written in order, so when the object is on
	// disk all of its pieces are.
	unsynced = `SELECT set_config('synchronous_commit', 'off', true)`
	// whole adds the object if all of its pieces are there: the server may have crashed meanwhile and lost some.
	whole = `WITH own AS (
			DELETE FROM jobhost.payload_partial WHERE key=$1 AND NOT dead
			AND (SELECT count(*) FROM jobhost.payload_piece WHERE key=$1)=$2 RETURNING key)
		INSERT INTO jobhost.payload_object (key, pieces) SELECT key, $2 FROM own`
	// isWhole finds the object, even if it was added when the message was sent the first time. It writes, so that the answer
	// waits for disk and replicas as the first one, which was lost, would have.
	isWhole = `UPDATE jobhost.payload_object SET pieces=pieces WHERE key=$1`
	// onlyPiece and onlyObject add an object in one message.
	onlyPiece = `INSERT INTO jobhost.payload_piece (key, n, data) VALUES ($1, 0, $2)
		ON CONFLICT (key, n) DO UPDATE SET data=excluded.data`
	onlyObject = `INSERT INTO jobhost.payload_object (key, pieces) VALUES ($1, $2)
		ON CONFLICT (key) DO UPDATE SET pieces=excluded.pieces`
)

var errLost = errors.New("the server has lost a part of the object: it has crashed, or nothing was written for two days")

// send writes a piece that is not the last one.
func (u *upload) send() error {
	u.tried = true
	var taken int64
	err := u.store.db.Send(u.ctx, func(b *pgx.Batch) {
		u.queuePiece(b).Exec(func(tag pgconn.CommandTag) error {
			taken = tag.RowsAffected()
			return nil
		})
		b.Queue(unsynced)
	})
	if err == nil && taken == 0 {
		err = errLost
	}
	if err != nil {
		return err
	}
	u.pieces++
	u.piece = u.piece[:0]
	return nil
}

// queuePiece queues the statement that adds a piece. It has to be the first of its message: then no transaction begins until
// the server has received all of the piece.
func (u *upload) queuePiece(b *pgx.Batch) *pgx.QueuedQuery {
	statement := nextPiece
	if u.pieces == 0 {
		statement = firstPiece
	}
	return b.Queue(u.store.db.SQL(statement), u.key, u.pieces, u.piece)
}

// Commit implements [payload.Object].
func (u *upload) Commit() error {
	u.tried = true
	var err error
	if u.pieces == 0 {
		err = u.commitSmall()
	} else {
		err = u.commitLarge()
	}
	u.done = err == nil
	return err
}

func (u *upload) commitSmall() error {
	return u.store.db.Send(u.ctx, func(b *pgx.Batch) {
		pieces := 0
		if len(u.piece) > 0 {
			b.Queue(u.store.db.SQL(onlyPiece), u.key, u.piece)
			pieces = 1
		}
		b.Queue(u.store.db.SQL(onlyObject), u.key, pieces)
	})
}

func (u *upload) commitLarge() error {
	var there int64
	err := u.store.db.Send(u.ctx, func(b *pgx.Batch) {
		u.queuePiece(b)
		b.Queue(u.store.db.SQL(whole), u.key, u.pieces+1)
		b.Queue(u.store.db.SQL(isWhole), u.key).Exec(func(tag pgconn.CommandTag) error {
			there = tag.RowsAffected()
			return nil
		})
	})
	if err == nil && there == 0 {
		err = errLost
	}
	return err
}

// Abort implements [payload.Object].
func (u *upload) Abort() {
	over := u.done || !u.tried
	u.done, u.piece = true, nil
	if over {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(u.ctx), abortWithin)
	defer cancel()
	_ = u.store.Delete(ctx, []string{u.key}) // Sweep removes what is left
}
