package record

import "context"

// StateReader is the part of a store that knows which jobs may have states in a store
// elsewhere, which can't be removed together with a job's rows. Ids that were
// noted by a [NoteStates] go with the operation that removes the job's rows, a
// Delete, a Tidy, a DeleteWorkflow or a Settle that evicts, to those that are gone, in
// the same batch, and stay there until a [ForgetStates]: what deletes states must learn
// of each job, even after a crash.
type StateReader interface {
	// StatesOf says of an id whether it is noted, and whether a job of that id was
	// removed whose states may still be there.
	StatesOf(ctx context.Context, id string) (noted, gone bool, err error)
	// StatesGone returns up to limit ids of jobs that were removed and whose states may
	// still be there, in the order of their bytes, after the one given; fewer mean that
	// there are no more.
	StatesGone(ctx context.Context, after string, limit int) ([]string, error)
}

// NoteStates notes that there may be states of a job elsewhere from now on. There need
// be no job of that id yet. Noting it again changes nothing. The note ends with the job
// alone: what was written after it must never be without.
type NoteStates struct{ ID string }

// ForgetStates says that what was left of these ids was deleted: they are gone no more. A
// note of a newer job with such an id stays.
type ForgetStates struct{ IDs []string }

func (*NoteStates) op() {}

func (*ForgetStates) op() {}
