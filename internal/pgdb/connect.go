package pgdb

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobhost/jobhost"
)

// prepare sets what every connection has in common.
func (db *DB) prepare(c *pgx.ConnConfig) {
	if c.Password == "" {
		c.Password = db.cfg.Password
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "jobhost " + db.cfg.Host
	}
	c.ConnectTimeout = connectTime
	dialer := &net.Dialer{
		Timeout: connectTime,
		// A server that has gone without a word is noticed by the third unanswered probe.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 3},
		Control:         limitUnacknowledged,
	}
	c.DialFunc = dialer.DialContext
	if c.ValidateConnect == nil {
		// Of several servers, or after a failover, the one that takes writes.
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	db.servers.watch(&c.Config)
}

// connect opens a connection of its own.
func (db *DB) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, db.connectTime())
	defer cancel()
	c := db.conn.Copy()
	db.servers.order(&c.Config)
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return nil, explainConnect(err)
	}
	encodeArrays(conn.TypeMap())
	return conn, nil
}

// connectToWrite opens a connection on which nothing waits for a lock for longer than it should. That is no setting of
// each transaction, as others are: statements are prepared before one begins, which waits for locks, too.
func (db *DB) connectToWrite(ctx context.Context) (*pgx.Conn, error) {
	conn, err := db.connect(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	if _, err := conn.Exec(ctx, "SELECT set_config('lock_timeout', $1, false)", strconv.FormatInt(db.cfg.LockTime.Milliseconds(), 10)); err != nil {
		_ = conn.Close(ctx)
		return nil, explainConnect(err)
	}
	return conn, nil
}

// connectTime is how long a connection may take, also if all servers but the last don't answer.
func (db *DB) connectTime() time.Duration {
	return time.Duration(1+number(&db.conn.Config)) * connectTime
}

// minVersion is the oldest server that is supported: 13 is the oldest that still gets fixes when this was written.
const minVersion = 13

// check refuses servers that don't keep what they acknowledge.
func (db *DB) check(ctx context.Context) error {
	var version int
	var fsync, commit, server, client string
	ctx, cancel := context.WithTimeout(ctx, db.connectTime())
	defer cancel()
	err := db.pool.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('fsync'), current_setting('synchronous_commit'),
		current_setting('server_encoding'), current_setting('client_encoding')`).Scan(&version, &fsync, &commit, &server, &client)
	if err != nil {
		return explainConnect(err)
	}
	if version/10000 < minVersion {
		return &jobhost.Error{Code: jobhost.CodeInvalid, Field: "store", Message: fmt.Sprintf("the server is PostgreSQL %d, and %d or later is needed", version/10000, minVersion)}
	}
	if server != "UTF8" || client != "UTF8" {
		return &jobhost.Error{
			Code: jobhost.CodeInvalid, Field: "store", Message: fmt.Sprintf("the database has the encoding %s, and %s for clients: it can't keep every text", server, client),
			Hint: "create the database with ENCODING 'UTF8', and leave client_encoding as it is",
		}
	}
	for name, value := range map[string]string{"fsync": fsync, "synchronous_commit": commit} {
		if value != "off" {
			continue
		}
		if !db.cfg.Relaxed {
			return &jobhost.Error{
				Code: jobhost.CodeInvalid, Field: "store",
				Message: name + " is off: the server may lose what it has acknowledged",
				Hint:    "set " + name + " = on, or durability = \"relaxed\" in [host] if you can afford to lose jobs",
			}
		}
		db.cfg.Logger.Warn("the database may lose acknowledged jobs", "setting", name, "value", value)
	}
	return nil
}
