package sqlitequeue

import (
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// settle ends an attempt under its lease.
func (b *batch) settle(tx *sqlitedb.Tx, op *record.Settle, failure string, res *record.OpResult) error {
	s := tx.Stmt("SELECT worker, tasks, job, idx, token, status FROM task WHERE seq=?").Int(int64(op.Key))
	if !s.Step() {
		res.Err = record.ErrFenced
		return s.Done()
	}
	worker, tasks, job, idx := s.ColInt(0), s.ColInt(1), s.ColInt(2), s.ColInt(3)
	held := s.ColInt(4) == op.Token && record.Status(s.ColInt(5)) == record.Open
	if err := s.Done(); err != nil {
		return err
	}
	if !held {
		res.Err = record.ErrFenced
		return nil
	}
	if op.Effects != nil && op.Status == record.Succeeded {
		if err := b.applyEffects(tx, worker, op, res); err != nil || res.Err != nil {
			return err
		}
	}
	l := b.ledger
	if err := l.record(tx, op, idx, failure); err != nil {
		return err
	}
	if op.Status == record.Open {
		return tx.Stmt("UPDATE task SET attempt=?, token=token+1, ready_at=?, started_at=?, fuel=fuel+? WHERE seq=?").
			Int(int64(op.Attempt)).Int(int64(op.ReadyAt)).Int(int64(op.StartedAt)).Int(op.Fuel).Int(int64(op.Key)).Exec()
	}
	var size int64
	if op.Status == record.Succeeded {
		size = int64(len(op.Result))
	}
	l.expires(job, op.ExpiresAt)
	err := tx.Stmt(`UPDATE task SET status=?, token=token+1, attempt=?, started_at=?, ended_at=?, result_size=?, fuel=fuel+?, expires_at=?
		WHERE seq=?`).
		Int(int64(op.Status)).Int(int64(op.Attempt)).Int(int64(op.StartedAt)).Int(int64(op.EndedAt)).
		Int(size).Int(op.Fuel).Int(int64(op.ExpiresAt)).Int(int64(op.Key)).Exec()
	if err != nil {
		return err
	}
	if op.Status == record.Succeeded && op.ResultRef != "" {
		if err := setResultRef(tx, op); err != nil {
			return err
		}
	}
	l.count(worker, record.Open, -1)
	l.count(worker, op.Status, 1)
	if op.Status == record.Dead {
		if err := l.bury(tx, op, worker, job, res); err != nil {
			return err
		}
	}
	if tasks == 1 {
		res.JobEnded = true
		res.Final[op.Status] = 1
		return nil
	}
	var by record.StatusCounts
	by[record.Open], by[op.Status] = -1, 1
	return moveParts(tx, job, by, res)
}

// record keeps what the attempt left behind.
func (l *ledger) record(tx *sqlitedb.Tx, op *record.Settle, idx int64, failure string) error {
	if op.Status == record.Succeeded && len(op.Result) > 0 {
		err := tx.Stmt("INSERT INTO result(task, data, sum) VALUES(?,?,?)").Int(int64(op.Key)).Blob(op.Result).
			Int(contentSum("result", int64(op.Key), op.Result)).Exec()
		if err != nil {
			return err
		}
	}
	if failure != "" {
		err := tx.Stmt("INSERT INTO failure(task, record, sum) VALUES(?,?,?)").Int(int64(op.Key)).Text(failure).
			Int(textSum("failure", int64(op.Key), failure)).Exec()
		if err != nil {
			return err
		}
	}
	if op.Suspect {
		if err := tx.Stmt("UPDATE task SET suspect=1 WHERE seq=?").Int(int64(op.Key)).Exec(); err != nil {
			return err
		}
	}
	if len(op.Log) == 0 && op.LogDropped == 0 {
		return nil
	}
	return tx.Stmt("INSERT INTO log(task, idx, attempt, dropped, text, sum) VALUES(?,?,?,?,?,?)").
		Int(int64(op.Key)).Int(idx).Int(int64(op.Number)).Int(op.LogDropped).Blob(op.Log).
		Int(logSum(int64(op.Key), idx, int64(op.Number), op.LogDropped, op.Log)).Exec()
}

// moveParts changes the sums of a job with several tasks, and records in res
// when none is open any more.
func moveParts(tx *sqlitedb.Tx, job int64, by record.StatusCounts, res *record.OpResult) error {
	s := tx.Stmt(`UPDATE part SET open=open+?, succeeded=succeeded+?, dead=dead+?, cancelled=cancelled+?
		WHERE job=? RETURNING open, succeeded, dead, cancelled`).
		Int(by[record.Open]).Int(by[record.Succeeded]).Int(by[record.Dead]).Int(by[record.Cancelled]).Int(job)
	if s.Step() && s.ColInt(0) == 0 {
		res.JobEnded = true
		for i := range res.Final {
			res.Final[i] = s.ColInt(i)
		}
	}
	return s.Done()
}
