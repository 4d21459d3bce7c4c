package record

import (
	"context"

	"github.com/jobhost/jobhost"
)

// ObjectReader is the part of a store that knows which objects outside of it
// its rows refer to: payloads and results that are too large for it. To the
// store a reference is a text that begins with the object's name, as
// payload.NameOf says; no two references have one name.
//
// A reference is live from the operation that brought it, a Submit or a Settle,
// to the one that removes its row, a Delete, a Tidy or a Settle that evicts.
// With that, in the same batch, it is gone, and stays so until a [Forget]:
// what deletes objects must learn of each, even after a crash.
type ObjectReader interface {
	// Gone returns up to limit references whose rows were removed, in the
	// order of their bytes, after the one given; fewer mean that there are no more.
	Gone(ctx context.Context, after string, limit int) ([]string, error)
	// Live says for each name whether a reference with it is live. Those that are
	// gone are not.
	Live(ctx context.Context, names []string) ([]bool, error)
}

// Forget removes references that are gone: their objects were deleted.
type Forget struct{ Refs []string }

// ErrRefTaken is the answer to a submit with the reference of another job, also
// when that job was just removed: a reference stands for one job.
func ErrRefTaken() error {
	return &jobhost.Error{
		Code: jobhost.CodeConflict, Field: "payload_ref",
		Message: "the uploaded payload belongs to another job",
		Hint:    "upload it again: each upload is for one job",
	}
}
