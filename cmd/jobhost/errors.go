package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/internal/text"
)

// errReported makes the exit code 1 when the reasons were shown already, each
// where it came up.
var errReported = errors.New("reported")

// usageError is the error of a command line that can never work.
type usageError struct{ cause error }

func (u *usageError) Error() string { return u.cause.Error() }
func (u *usageError) Unwrap() error { return u.cause }

func usagef(format string, args ...any) error {
	return &usageError{cause: fmt.Errorf(format, args...)}
}

func asUsage(err error) error {
	if _, ok := errors.AsType[*usageError](err); ok || err == nil {
		return err
	}
	return &usageError{cause: err}
}

// exit reports an error that ended cmd and returns the exit code.
func (e *env) exit(cmd *cobra.Command, err error) int {
	if err == nil {
		return exitOK
	}
	_, wrongUsage := errors.AsType[*usageError](err)
	if !errors.Is(err, errReported) {
		e.report(err)
	}
	if !wrongUsage {
		return exitFailed
	}
	if jobhost.HintOf(err) == "" {
		e.hint("see " + cmd.CommandPath() + " --help")
	}
	return exitUsage
}

// report shows an error on stderr: each of several, with its hint.
func (e *env) report(err error) {
	for _, one := range split(err) {
		message, hint := one.Error(), cmp.Or(e.reachHint(one), jobhost.HintOf(one))
		if fault, ok := errors.AsType[*manifest.Fault](one); ok {
			plain := *fault // its text would repeat the hint
			plain.Hint = ""
			message = plain.Error()
		}
		_, _ = fmt.Fprintf(e.stderr, "jobhost: %s\n", text.Indent(clip(message)))
		e.hint(hint)
	}
}

func (e *env) hint(lines string) {
	if lines != "" {
		_, _ = fmt.Fprintf(e.stderr, "  hint: %s\n", text.Indent(clip(lines)))
	}
}

// split returns the errors that were joined into one; none of nil.
func split(err error) []error {
	if err == nil {
		return nil
	}
	if u, ok := errors.AsType[*usageError](err); ok {
		err = u.cause
	}
	context, parts := joined(err)
	if parts == nil {
		return []error{err}
	}
	var all []error
	for _, one := range parts {
		if context != "" {
			one = fmt.Errorf("%s%w", context, one)
		}
		all = append(all, split(one)...)
	}
	return all
}

// joined returns the errors that were joined into err or into what it wraps, with the
// text that comes before them; none if nothing was joined.
func joined(err error) (context string, parts []error) {
	for at := err; at != nil; at = errors.Unwrap(at) {
		if several, ok := at.(interface{ Unwrap() []error }); ok && errors.Join(several.Unwrap()...).Error() == at.Error() {
			context, _ = strings.CutSuffix(err.Error(), at.Error())
			return context, several.Unwrap()
		}
		if _, ok := at.(*jobhost.Error); ok { //nolint:errorlint // the chain is walked here, one error at a time
			return "", nil // its cause is for the log
		}
	}
	return "", nil
}

// newGroup makes a command that only holds others. By itself it shows its help.
func newGroup(use, short string, children ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{Use: use, Short: short}
	asGroup(group)
	group.AddCommand(children...)
	return group
}

func asGroup(cmd *cobra.Command) {
	cmd.SuggestionsMinimumDistance = 2
	cmd.Args = noSuchCommand
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}

// noSuchCommand refuses arguments, since a command of that name would have been found.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	e := &jobhost.Error{
		Code:    jobhost.CodeInvalid,
		Message: fmt.Sprintf("%q is not a command of %s", args[0], cmd.CommandPath()),
	}
	if to := synonym(cmd, args[0]); to != "" {
		e.Hint = "did you mean " + to + "?"
	} else if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		slices.Sort(near)
		e.Hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return e
}
