package workflow

import (
	"errors"
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/machine"
)

// tooLarge is the error for data that is too large to be composed within a
// transaction.
func tooLarge(what string, size int64) *jobhost.Error {
	return &jobhost.Error{
		Code: jobhost.CodeTooLarge, Message: fmt.Sprintf("%s would have %d bytes or more; there may be %d", what, size, maxComposed),
		Hint: "take the output of one step as it is, or let steps return where their data are",
	}
}

// elsewhere is the error for an output in a payload store that would have to be
// part of something.
func elsewhere(step string) *jobhost.Error {
	return &jobhost.Error{
		Code:    jobhost.CodeTooLarge,
		Message: fmt.Sprintf("a result of step %s is larger than payload.threshold, so that it can't be put together with others", step),
		Hint:    "take the output of the step as it is, let it return less or where its data are, or raise payload.threshold",
	}
}

// forPeople converts an error, unless it is the store's, to one that a step can
// fail with.
func forPeople(err error) error {
	if err == nil || !errors.Is(err, machine.ErrUnreadable) {
		return err
	}
	if e, ok := errors.AsType[*jobhost.Error](err); ok {
		return e
	}
	return &jobhost.Error{Code: jobhost.CodeInvalid, Message: err.Error()}
}
