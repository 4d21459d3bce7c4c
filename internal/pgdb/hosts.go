package pgdb

import (
	"context"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
)

// Host is a row of the table of hosts.
type Host struct {
	Name, Address string
	// Key is the public half of the key with which it identifies itself to other hosts.
	Key     []byte
	Version string
	// Slots is how many tasks it can run at a time, and Busy how many it runs.
	Slots, Busy int
	// MayLead is whether its manifest lets it lead.
	MayLead bool
	// Since is when it started, by the database's clock; Seen is the age of its last heartbeat.
	Since time.Time
	Seen  time.Duration
	// Drained hosts don't lead until they are restarted or asked to lead.
	Drained bool
	// Wanted hosts were asked to lead within wishTime.
	Wanted bool
	// Former are keys of earlier processes of this host that are known to have ended. Only Beat uses them.
	Former [][]byte
}

// Times in the table of hosts.
const (
	// LostTime is how long after its last heartbeat a host counts as gone.
	LostTime = 3 * time.Second
	wishTime = 10 * time.Second // for which a wish holds: that a host leads
	keepTime = 24 * time.Hour   // for which the row of a lost host is kept
)

// listHosts reads the table; its argument is wishTime in seconds.
const listHosts = `SELECT name, address, key, version, slots, busy, may_lead, since, extract(epoch FROM clock_timestamp()-seen)::float8, drained,
	coalesce(wanted > clock_timestamp()-make_interval(secs => $1), false) FROM jobhost.host ORDER BY name`

// Beat is the heartbeat of a host: it adds or renews its row, and returns all rows. A row can be taken by the host whose
// key it has, by one that has that key among its former ones, and by any host of that name once it is older than
// [LostTime]; otherwise nothing is changed. A new process does not inherit the wishes for the one before.
func (db *DB) Beat(ctx context.Context, h Host) (hosts []Host, err error) {
	err = db.retryOnce(ctx, func(ctx context.Context) error {
		hosts = nil
		return db.pool.SendBatch(ctx, db.beat(h, &hosts)).Close()
	})
	return hosts, explainRead(ctx, err)
}

func (db *DB) beat(h Host, hosts *[]Host) *pgx.Batch {
	b := &pgx.Batch{}
	b.Queue(db.SQL("DELETE FROM jobhost.host WHERE seen < clock_timestamp()-make_interval(secs => $1)"), keepTime.Seconds())
	b.Queue(db.SQL(`INSERT INTO jobhost.host AS h (name, address, key, version, slots, busy, may_lead, since, seen)
		VALUES ($1, $2, $3, $4, $5, $6, $7, clock_timestamp(), clock_timestamp())
		ON CONFLICT (name) DO UPDATE SET address=excluded.address, key=excluded.key, version=excluded.version, slots=excluded.slots,
			busy=excluded.busy, may_lead=excluded.may_lead, seen=excluded.seen,
			since=CASE WHEN h.key=excluded.key THEN h.since ELSE excluded.since END,
			drained=h.drained AND h.key=excluded.key,
			wanted=CASE WHEN h.key=excluded.key THEN h.wanted END
		WHERE h.key=excluded.key OR h.key=ANY($9) OR h.seen < clock_timestamp()-make_interval(secs => $8)`),
		h.Name, h.Address, h.Key, h.Version, h.Slots, h.Busy, h.MayLead, LostTime.Seconds(), h.Former)
	b.Queue(db.SQL(listHosts), wishTime.Seconds()).Query(scanHosts(hosts))
	return b
}

// Hosts returns all hosts with a heartbeat within the last day, by name.
func (db *DB) Hosts(ctx context.Context) (hosts []Host, err error) {
	err = db.retryOnce(ctx, func(ctx context.Context) error {
		hosts = nil
		b := &pgx.Batch{}
		b.Queue(db.SQL(listHosts), wishTime.Seconds()).Query(scanHosts(&hosts))
		return db.pool.SendBatch(ctx, b).Close()
	})
	return hosts, explainRead(ctx, err)
}

func scanHosts(hosts *[]Host) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var h Host
		into := []any{
			&h.Name, &h.Address, &h.Key, &h.Version, &h.Slots, &h.Busy, &h.MayLead, &h.Since, (*seconds)(&h.Seen), &h.Drained, &h.Wanted,
		}
		_, err := pgx.ForEachRow(rows, into, func() error {
			*hosts = append(*hosts, h)
			return nil
		})
		return err
	}
}

// Drain asks a host not to lead any more, and reports whether there is a host of this name.
func (db *DB) Drain(ctx context.Context, name string) (found bool, err error) {
	return db.wish(ctx, "UPDATE jobhost.host SET drained=true, wanted=NULL WHERE name=$1", name)
}

// Want asks a host to lead, which ends its drain and replaces the wish that another one leads.
func (db *DB) Want(ctx context.Context, name string) (found bool, err error) {
	return db.wish(ctx, `UPDATE jobhost.host SET drained=drained AND name<>$1, wanted=CASE WHEN name=$1 THEN clock_timestamp() END
		WHERE name=$1 OR wanted IS NOT NULL AND EXISTS (SELECT FROM jobhost.host WHERE name=$1)`, name)
}

func (db *DB) wish(ctx context.Context, sql, name string) (found bool, err error) {
	err = db.retryOnce(ctx, func(ctx context.Context) error {
		tag, err := db.pool.Exec(ctx, db.SQL(sql), name)
		found = tag.RowsAffected() > 0
		return err
	})
	return found, explainRead(ctx, err)
}

// WishMet removes the wish that a host leads, since it does now.
func (db *DB) WishMet(ctx context.Context, name string) error {
	_, err := db.wish(ctx, "UPDATE jobhost.host SET wanted=NULL WHERE name=$1", name)
	return err
}

// Leave removes the row of a host that stops.
func (db *DB) Leave(ctx context.Context, name string, key []byte) error {
	return explainRead(ctx, db.retryOnce(ctx, func(ctx context.Context) error {
		_, err := db.pool.Exec(ctx, db.SQL("DELETE FROM jobhost.host WHERE name=$1 AND key=$2"), name, key)
		return err
	}))
}

// HasSession reports whether the session through which a leader writes still exists. Without it the leader has to connect
// again before it can write.
func (db *DB) HasSession(ctx context.Context, l Leader) (there bool, err error) {
	err = db.retryOnce(ctx, func(ctx context.Context) error {
		return db.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid=$1)", int32(l.backend)).Scan(&there)
	})
	return there, explainRead(ctx, err)
}

// LocalAddr is this end of the connections to the database; nil = they don't use TCP.
func (db *DB) LocalAddr(ctx context.Context) (*net.TCPAddr, error) {
	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return nil, explainConnect(err)
	}
	defer conn.Release()
	addr, _ := conn.Conn().PgConn().Conn().LocalAddr().(*net.TCPAddr)
	return addr, nil
}

// SetAddress sets the address that this host announces when it becomes leader.
func (db *DB) SetAddress(address string) { db.address.Store(&address) }

// Secret returns the value that all hosts share under a name. The first host that asks sets it to its offer.
func (db *DB) Secret(ctx context.Context, name string, offer []byte) (value []byte, err error) {
	err = db.retryOnce(ctx, func(ctx context.Context) error {
		b := &pgx.Batch{}
		b.Queue(db.SQL("INSERT INTO jobhost.secret VALUES ($1, $2) ON CONFLICT DO NOTHING"), name, offer)
		b.Queue(db.SQL("SELECT value FROM jobhost.secret WHERE name=$1"), name).QueryRow(func(row pgx.Row) error { return row.Scan(&value) })
		return db.pool.SendBatch(ctx, b).Close()
	})
	return value, explainRead(ctx, err)
}

// SetSecret replaces the value that all hosts share under a name.
func (s *Session) SetSecret(name string, value []byte) error {
	_, err := s.Exec("INSERT INTO jobhost.secret VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value=excluded.value", name, value)
	return err
}
