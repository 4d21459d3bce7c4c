package pgqueue

import (
	"errors"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

func (b *batch) deleteWorkflow(*pgdb.Tx, *pgdb.Session, *record.DeleteWorkflow, *record.OpResult) error {
	return errors.New("not built yet")
}
