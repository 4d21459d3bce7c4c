package pgdb

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobhost/jobhost"
)

// prepare sets what every connection has in common.
func (db *DB) prepare(c *pgx.ConnConfig) {
	if db.cfg.Password != "" {
		c.Password = db.cfg.Password
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "jobhost " + db.cfg.Host
	}
	c.ConnectTimeout = connectTime
	dialer := &net.Dialer{
		Timeout: connectTime,
		// The third unanswered probe shows that a server has vanished.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 3},
		Control:         limitUnacknowledged,
	}
	c.DialFunc = dialer.DialContext
	if c.ValidateConnect == nil {
		// Of several servers, or after a failover, take the one that accepts writes.
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	c.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		_, err := conn.Exec(ctx, searchPath).ReadAll()
		return err
	}
	db.servers.watch(&c.Config)
}

// searchPath says where the server looks for functions and operators that a statement names without a schema: nowhere but
// among its own. By default it looks in public too and takes what fits the arguments best. Other roles may be able to add
// functions there, which would run with the rights of this host.
const searchPath = "SET search_path = pg_catalog, pg_temp"

// warnExposed warns of a database on another machine whose certificate isn't checked: others on the network may read what is
// sent, the password included, or answer in its place. Servers are named as the URL has them.
func (db *DB) warnExposed() {
	if c := &db.conn.Config; exposed(c) {
		db.cfg.Logger.Warn("others on the network may read or forge what the database is sent: set sslmode=verify-full in its URL")
	}
}

func exposed(c *pgconn.Config) bool {
	all := append([]*pgconn.FallbackConfig{{Host: c.Host, TLSConfig: c.TLSConfig}}, c.Fallbacks...)
	return slices.ContainsFunc(all, func(f *pgconn.FallbackConfig) bool {
		checked := f.TLSConfig != nil && (!f.TLSConfig.InsecureSkipVerify || f.TLSConfig.VerifyPeerCertificate != nil)
		return !checked && !isHere(f.Host)
	})
}

// isHere reports whether a server is on this machine, by its name.
func isHere(host string) bool {
	network, _ := pgconn.NetworkAddress(host, 1)
	ip := net.ParseIP(host)
	return network == "unix" || host == "localhost" || ip != nil && ip.IsLoopback()
}

// connect opens a connection outside of the pools.
func (db *DB) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, db.connectTimeout())
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

// connectTimeout is how long connecting may take, even if no server but the last answers.
func (db *DB) connectTimeout() time.Duration {
	return time.Duration(1+serverCount(&db.conn.Config)) * connectTime
}

// minVersion is the oldest server that is supported: the oldest that still got fixes when this was written.
const minVersion = 13

// check refuses servers that are too old, can't store every text, or may lose what they acknowledge.
func (db *DB) check(ctx context.Context) error {
	var version int
	var fsync, commit, server, client string
	ctx, cancel := context.WithTimeout(ctx, db.connectTimeout())
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
			Hint: "make the database anew, with createdb --encoding UTF8 --template template0, and leave client_encoding as it is",
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
