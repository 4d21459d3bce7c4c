package plan

import (
	"errors"
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

// maxFaults is the maximum number of faults listed.
const maxFaults = 100

// faults are the faults of a workflow.
type faults struct {
	list []error
	more int
}

func (f *faults) add(field, hint, format string, args ...any) {
	f.put(&jobhost.Error{Code: jobhost.CodeInvalid, Field: field, Message: fmt.Sprintf(format, args...), Hint: hint})
}

func (f *faults) put(e *jobhost.Error) {
	if len(f.list) == maxFaults {
		f.more++
		return
	}
	f.list = append(f.list, e)
}

// addAll adds joined errors, with their fields below field. An error's own
// field is kept if deep.
func (f *faults) addAll(field string, err error, deep bool) {
	switch e := err.(type) { //nolint:errorlint // the tree is walked by hand
	case nil:
	case *jobhost.Error:
		copied := *e
		copied.Field = field
		if deep && e.Field != "" {
			copied.Field += "." + e.Field
		}
		f.put(&copied)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			f.addAll(field, one, deep)
		}
	default:
		f.add(field, "", "%s", printable(nil, err))
	}
}

func (f *faults) join() error {
	if f.more > 0 {
		f.list = append(f.list, &jobhost.Error{Code: jobhost.CodeInvalid, Message: fmt.Sprintf("%d more faults are not listed", f.more)})
		f.more = 0
	}
	return errors.Join(f.list...)
}

// printable returns the text of the first non-nil error, safe and short.
func printable(errs ...error) string {
	for _, err := range errs {
		if err != nil {
			return text.Message(err.Error())
		}
	}
	return ""
}
