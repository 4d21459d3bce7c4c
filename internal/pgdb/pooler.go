package pgdb

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobhost/jobhost"
)

// probes is how often two connections are asked for their sessions. Once would be enough if nothing else used the pooler
// meanwhile.
const probes = 16

var errPooled = &jobhost.Error{
	Code: jobhost.CodeInvalid, Field: "store",
	Message: "the database is reached through a pooler that gives a session to several connections, such as pgbouncer with pool_mode = transaction",
	Hint:    "connect to PostgreSQL itself, or set pool_mode = session for this database in the pooler",
}

// checkPooler refuses poolers that give a connection another session for each transaction: it would lose its locks and
// prepared statements. The check itself prepares nothing, since that may fail behind such a pooler.
func (db *DB) checkPooler(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*db.connectTimeout())
	defer cancel()
	first, err := db.pool.Acquire(ctx)
	if err != nil {
		return explainConnect(err)
	}
	defer first.Release()
	conn := first.Conn().PgConn()
	session, err := sessionOf(ctx, conn)
	if err != nil {
		return explainConnect(err)
	}
	if session == int64(conn.PID()) {
		return nil // the server itself has answered
	}
	db.cfg.Logger.Info("the database is reached through a pooler")
	other, err := db.connect(ctx)
	if err != nil {
		return &jobhost.Error{
			Code: jobhost.CodeUnavailable, Message: "the pooler in front of the database gives this host no further session: " + reasonOf(err),
			Hint: "a host needs up to 10: see default_pool_size and max_client_conn of pgbouncer",
		}
	}
	defer func() { _ = other.Close(context.WithoutCancel(ctx)) }()
	return probe(ctx, conn, other.PgConn())
}

// probe looks whether one of two connections gets the session of the other, or a different one than before. Each is asked
// twice in a row, for poolers that hand out sessions in turn.
func probe(ctx context.Context, a, b *pgconn.PgConn) error {
	owners := map[int64]*pgconn.PgConn{}
	for range probes {
		for _, conn := range []*pgconn.PgConn{a, a, b, b} {
			session, err := sessionOf(ctx, conn)
			if err != nil {
				return explainConnect(err)
			}
			if owner := owners[session]; owner != nil && owner != conn {
				return errPooled
			}
			if owners[session] = conn; len(owners) > 2 {
				return errPooled
			}
		}
	}
	return nil
}

// sessionOf returns the process of the server that answers a connection.
func sessionOf(ctx context.Context, conn *pgconn.PgConn) (int64, error) {
	results, err := conn.Exec(ctx, "SELECT pg_backend_pid()").ReadAll()
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(string(results[0].Rows[0][0]), 10, 64)
}
