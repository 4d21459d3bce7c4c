package pgqueue

import (
	"strconv"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// changeKV changes keys of a worker outside of any attempt.
func (b *batch) changeKV(tx *pgdb.Tx, op *record.ChangeKV, res *record.OpResult) error {
	im := b.image
	worker := im.worker(op.Worker)
	if plan := im.planKV(tx, worker, op.Changes, op.At, op.Quota, res); plan != nil {
		im.keys.write(plan)
	}
	return nil
}

// kvPlan is a set of changes of a worker's keys that can be made.
type kvPlan struct {
	worker  int64
	changes []kvChange
	growth  int64 // of the cost of the keys
}

// kvChange is a change of a key, and the row after it.
type kvChange struct {
	*record.KVChange
	row kvRow
}

// planKV checks changes of keys and plans them. Nil = there is nothing to do: they are refused in res, or rows are missing.
func (im *image) planKV(tx *pgdb.Tx, worker int64, changes []record.KVChange, at record.Millis, quota int64, res *record.OpResult) *kvPlan {
	if len(changes) == 0 {
		return nil
	}
	k := &im.keys
	k.sweep(tx, int64(at))
	k.want(tx, worker, column(changes, func(c *record.KVChange) string { return c.Key }))
	if tx.Missed() {
		return nil
	}
	plan := k.plan(tx, worker, changes, at, res)
	if plan == nil || quota <= 0 || k.of(worker).bytes+plan.growth <= quota {
		return plan
	}
	// Expired keys must not count. Usually they have been removed by now.
	if k.of(worker).earliest <= int64(at) {
		if k.expire(tx, overdue{worker, int64(at), allKeys}); tx.Missed() {
			return nil
		}
		plan = k.plan(tx, worker, changes, at, res)
	}
	if plan.growth > 0 && k.of(worker).bytes+plan.growth > quota {
		res.Err = record.ErrQuota(im.names[worker], quota)
		return nil
	}
	return plan
}

// plan plans changes of keys whose rows are known; nil = they are refused in res.
func (k *keyRows) plan(tx *pgdb.Tx, worker int64, changes []record.KVChange, at record.Millis, res *record.OpResult) *kvPlan {
	p := &kvPlan{worker: worker, changes: make([]kvChange, len(changes))}
	for i := range changes {
		c := &p.changes[i]
		c.KVChange = &changes[i]
		row := k.rows.Get(tx, kvKey{worker, c.Key})
		if row != nil {
			p.growth -= row.cost(c.Key)
		}
		if res.Err = c.look(row, at); res.Err != nil {
			return nil
		}
		if c.Kind != record.KVDelete {
			p.growth += c.row.cost(c.Key)
		}
	}
	return p
}

// look determines the row of a key after the change. A key that has expired counts as gone.
func (c *kvChange) look(row *kvRow, at record.Millis) error {
	var was kvRow
	if row != nil && !row.expired(int64(at)) {
		was = *row
	}
	if c.Checked && c.Version != was.version {
		return record.ErrVersion(c.Key)
	}
	switch c.Kind {
	case record.KVDelete:
		return nil
	case record.KVAdd:
		n, ok := record.AddNumber(was.number, c.Delta)
		if !ok {
			return record.ErrNoNumber(c.Key)
		}
		number := strconv.AppendInt(nil, n, 10)
		c.row = kvRow{expires: was.expires, number: number, value: number}
	default:
		c.row = kvRow{expires: int64(c.Expires), number: numberOf(c.Value), value: notNil(c.Value)}
	}
	c.row.changedAt, c.row.size = int64(at), int64(len(c.row.value))
	return nil
}

// numberOf returns a value that is a whole number, in its shortest form. For other values it is empty, which isn't a number.
func numberOf(value []byte) []byte {
	const longest = len("-9223372036854775808")
	if len(value) <= longest || value[1] == '0' {
		if n, ok := record.AddNumber(notNil(value), 0); ok {
			return strconv.AppendInt(nil, n, 10)
		}
	}
	return []byte{}
}

// write makes the changes.
func (k *keyRows) write(p *kvPlan) {
	u := k.of(p.worker)
	u.bytes += p.growth
	for i := range p.changes {
		c := &p.changes[i]
		key := kvKey{p.worker, c.Key}
		if c.Kind == record.KVDelete {
			k.rows.Delete(key)
			continue
		}
		u.version++
		c.row.version = u.version
		k.rows.Put(key, c.row)
		if c.row.expires > 0 {
			u.earliest, k.earliest = min(u.earliest, c.row.expires), min(k.earliest, c.row.expires)
		}
	}
	k.set(p.worker, u)
}
