package sqlitequeue

import (
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// Changes of times that were written while the clock was ahead. ?1 is what it shows now,
// ?2 by how much it was ahead, ?3 a time after everything that was written.
const (
	rewindOpen = `UPDATE task SET
			deadline=CASE WHEN deadline>?1 AND ` + writtenAhead + ` THEN max(?1, deadline-?2) ELSE deadline END,
			ready_at=CASE WHEN ready_at>?1 THEN max(?1, ready_at-?2) ELSE ready_at END
		WHERE status=0 AND (ready_at>?1 OR deadline>?1) AND (ready_at BETWEEN ?1+1 AND ?1+?2 OR ` + writtenAhead + `)`
	writtenAhead = `max(started_at, (SELECT created_at FROM job WHERE job.seq=task.job)) BETWEEN ?1+1 AND ?3`

	rewindEnded = `UPDATE task SET expires_at=max(?1, expires_at-?2)
		WHERE status<>0 AND expires_at>?1 AND ended_at BETWEEN ?1+1 AND ?3`
	rewindUnique = `UPDATE uniq SET until=max(?1, until-?2)
		WHERE until>?1 AND (SELECT created_at FROM job WHERE job.seq=uniq.job) BETWEEN ?1+1 AND ?3`
	rewindWorkflows = `UPDATE workflow SET expires_at=max(?1, expires_at-?2)
		WHERE expires_at>?1 AND ended_at BETWEEN ?1+1 AND ?3`
	rewindSpans = `UPDATE span SET due=?1 WHERE due>?1 AND ?2>0 AND ?3>0` // each block is looked at again
)

// rewind implements [record.Rewind]. It reads all tasks and keys once.
func rewind(tx *sqlitedb.Tx, op *record.Rewind) error {
	for _, sql := range []string{rewindOpen, rewindEnded, rewindUnique, rewindWorkflows, rewindSpans} {
		if err := tx.Stmt(sql).Int(int64(op.To)).Int(int64(op.From - op.To)).Int(int64(op.Until)).Exec(); err != nil {
			return err
		}
	}
	return rewindKeys(tx, op)
}

// aKey is a row of the table of keys.
type aKey struct {
	id, worker, version, expires, changed int64
	key                                   string
	value                                 []byte
}

// rewindKeys does so for the keys, one after the other, since their checksums have the times in
// them. A damaged one stays as it is.
func rewindKeys(tx *sqlitedb.Tx, op *record.Rewind) error {
	for after := int64(0); ; {
		s := tx.Stmt(`SELECT id, worker, key, version, expires, changed_at, value, sum FROM kv
			WHERE id>? AND expires>? AND changed_at BETWEEN ? AND ? ORDER BY id LIMIT 1`).
			Int(after).Int(int64(op.To)).Int(int64(op.To) + 1).Int(int64(op.Until))
		if !s.Step() {
			return s.Done()
		}
		k := aKey{
			id: s.ColInt(0), worker: s.ColInt(1), key: s.ColText(2), version: s.ColInt(3),
			expires: s.ColInt(4), changed: s.ColInt(5), value: append([]byte{}, s.ColBlob(6)...),
		}
		whole := s.ColSum(7, kvSum(k.worker, k.key, k.version, k.expires, k.changed, k.value))
		if err := s.Done(); err != nil {
			return err
		}
		after = k.id
		if !whole {
			continue
		}
		k.expires = max(int64(op.To), k.expires-int64(op.From-op.To))
		err := tx.Stmt("UPDATE kv SET expires=?, sum=? WHERE id=?").Int(k.expires).
			Int(kvSum(k.worker, k.key, k.version, k.expires, k.changed, k.value)).Int(k.id).Exec()
		if err != nil {
			return err
		}
	}
}
