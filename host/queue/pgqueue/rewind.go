package pgqueue

import (
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// Corrections of times that were written while the clock was ahead. $1 is the time now, $2 by how much the clock was ahead,
// $3 a time after all that were written.
const (
	rewindOpen = `UPDATE jobhost.task SET
			deadline=CASE WHEN deadline>$1 AND ` + writtenAhead + ` THEN greatest($1, deadline-$2) ELSE deadline END,
			ready_at=CASE WHEN task.ready_at>$1 THEN greatest($1, task.ready_at-$2) ELSE task.ready_at END
		FROM jobhost.job WHERE job.seq=task.job AND status=0 AND (task.ready_at>$1 OR deadline>$1)
			AND (task.ready_at BETWEEN $1+1 AND $1+$2 OR ` + writtenAhead + `)`
	writtenAhead = `greatest(started_at, created_at) BETWEEN $1+1 AND $3`

	rewindEnded = `UPDATE jobhost.task SET expires_at=greatest($1, expires_at-$2)
		WHERE status<>0 AND expires_at>$1 AND ended_at BETWEEN $1+1 AND $3`
	rewindUnique = `UPDATE jobhost.uniq SET until=greatest($1, until-$2)
		FROM jobhost.job WHERE job.seq=uniq.job AND until>$1 AND created_at BETWEEN $1+1 AND $3`
	rewindWorkflows = `UPDATE jobhost.workflow SET expires_at=greatest($1, expires_at-$2)
		WHERE expires_at>$1 AND ended_at BETWEEN $1+1 AND $3`
	rewindKeys = `UPDATE jobhost.kv SET expires=greatest($1, expires-$2)
		WHERE expires>$1 AND changed_at BETWEEN $1+1 AND $3`
)

// rewind applies a [record.Rewind]. It reads all tasks and keys.
func rewind(s *pgdb.Session, op *record.Rewind) error {
	for _, sql := range []string{rewindOpen, rewindEnded, rewindUnique, rewindWorkflows, rewindKeys} {
		if _, err := s.Exec(sql, int64(op.To), int64(op.From-op.To), int64(op.Until)); err != nil {
			return err
		}
	}
	_, err := s.Exec("UPDATE jobhost.span SET due=$1 WHERE due>$1", int64(op.To)) // each block is looked at again
	return err
}
