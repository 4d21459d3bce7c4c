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
	// Key is the public half of the key that it shows to other hosts.
	Key     []byte
	Version string
	// Slots is how many tasks it can run at one time, and Busy how many it runs.
	Slots, Busy int
	// MayLead is what its manifest says.
	MayLead bool
	// Since is when it began, by the database's clock; Seen is how long ago it was last heard of.
	Since time.Time
	Seen  time.Duration
	// Drained hosts don't lead until they are started anew or asked to.
	Drained bool
	// Wanted hosts were asked to lead a short time ago.
	Wanted bool
	// Former are keys of processes of this host that are known to have ended. Only Beat looks at them.
	Former [][]byte
}

// Bounds of membership.
const (
	// LostTime is how long after its last heartbeat a host counts as gone.
	LostTime = 3 * time.Second
	wishTime = 10 * time.Second // in which a wish can be met
	keepTime = 24 * time.Hour   // for which the row of a lost host is kept
)

// listHosts reads the table; its first argument is how many seconds a wish holds.
const listHosts = `SELECT name, address, key, version, slots, busy, may_lead, since, extract(epoch FROM clock_timestamp()-seen)::float8, drained,
	coalesce(wanted > clock_timestamp()-make_interval(secs => $1), false) FROM jobhost.host ORDER BY name`

// Beat renews the row of a host and returns all of them. The row belongs to the key in it until it was not renewed for
// [LostTime], or to one of the former ones: if another host has it, nothing is changed. A host that is new finds no wishes of an earlier one.
func (db *DB) Beat(ctx context.Context, h Host) (hosts []Host, err error) {
	err = db.twice(ctx, func(ctx context.Context) error {
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

// Hosts returns all hosts that were heard of within a day, by name.
func (db *DB) Hosts(ctx context.Context) (hosts []Host, err error) {
	err = db.twice(ctx, func(ctx context.Context) error {
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

// Drain asks a host not to lead any more, and reports whether there is one of this name.
func (db *DB) Drain(ctx context.Context, name string) (found bool, err error) {
	return db.wish(ctx, "UPDATE jobhost.host SET drained=true, wanted=NULL WHERE name=$1", name)
}

// Want asks a host to lead, which ends a drain, and takes back what others were asked.
func (db *DB) Want(ctx context.Context, name string) (found bool, err error) {
	return db.wish(ctx, `UPDATE jobhost.host SET drained=drained AND name<>$1, wanted=CASE WHEN name=$1 THEN clock_timestamp() END
		WHERE name=$1 OR wanted IS NOT NULL AND EXISTS (SELECT FROM jobhost.host WHERE name=$1)`, name)
}

func (db *DB) wish(ctx context.Context, sql, name string) (found bool, err error) {
	err = db.twice(ctx, func(ctx context.Context) error {
		tag, err := db.pool.Exec(ctx, db.SQL(sql), name)
		found = tag.RowsAffected() > 0
		return err
	})
	return found, explainRead(ctx, err)
}

// Led takes back the wish that a host leads, since it does.
func (db *DB) Led(ctx context.Context, name string) error {
	_, err := db.wish(ctx, "UPDATE jobhost.host SET wanted=NULL WHERE name=$1", name)
	return err
}

// Leave removes the row of a host that ends.
func (db *DB) Leave(ctx context.Context, name string, key []byte) error {
	return explainRead(ctx, db.twice(ctx, func(ctx context.Context) error {
		_, err := db.pool.Exec(ctx, db.SQL("DELETE FROM jobhost.host WHERE name=$1 AND key=$2"), name, key)
		return err
	}))
}

// HasSession reports whether the session with which a leader writes is still there. Without one the leader writes
// nothing, unless it connects again.
func (db *DB) HasSession(ctx context.Context, l Leader) (there bool, err error) {
	err = db.twice(ctx, func(ctx context.Context) error {
		return db.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid=$1)", int32(l.backend)).Scan(&there)
	})
	return there, explainRead(ctx, err)
}

// LocalAddr is this end of the connections to the database; nil = they are no TCP.
func (db *DB) LocalAddr(ctx context.Context) (*net.TCPAddr, error) {
	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return nil, explainConnect(err)
	}
	defer conn.Release()
	addr, _ := conn.Conn().PgConn().Conn().LocalAddr().(*net.TCPAddr)
	return addr, nil
}

// SetAddress says where other hosts find this one, from its next term on.
func (db *DB) SetAddress(address string) { db.address.Store(&address) }

// Secret returns what all hosts know under a name: what the first of them that asks has offered.
func (db *DB) Secret(ctx context.Context, name string, offer []byte) (value []byte, err error) {
	err = db.twice(ctx, func(ctx context.Context) error {
		b := &pgx.Batch{}
		b.Queue(db.SQL("INSERT INTO jobhost.secret VALUES ($1, $2) ON CONFLICT DO NOTHING"), name, offer)
		b.Queue(db.SQL("SELECT value FROM jobhost.secret WHERE name=$1"), name).QueryRow(func(row pgx.Row) error { return row.Scan(&value) })
		return db.pool.SendBatch(ctx, b).Close()
	})
	return value, explainRead(ctx, err)
}

// SetSecret replaces what all hosts know under a name.
func (s *Session) SetSecret(name string, value []byte) error {
	_, err := s.Exec("INSERT INTO jobhost.secret VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value=excluded.value", name, value)
	return err
}
