package expr

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

// fault is a fault in an expression.
type fault struct {
	start   common.Location
	message string
	hint    string
}

// maxFaults is the maximum number of faults reported for one expression.
const maxFaults = 8

// asError joins faults to an error: each begins with its line and column, which
// count from 1, columns in characters.
func asError(faults []fault) error {
	var errs []error
	for i, f := range faults {
		if i == maxFaults {
			break
		}
		errs = append(errs, jobhost.Invalid("", f.hint, "%s%s", position(f.start), f.message))
	}
	return errors.Join(errs...)
}

func position(l common.Location) string {
	if l == nil || l.Line() < 1 || l.Column() < 0 {
		return ""
	}
	return fmt.Sprintf("%d:%d: ", l.Line(), l.Column()+1)
}

var (
	undeclared = regexp.MustCompile(`^undeclared reference to '([^']*)'`)
	overload   = regexp.MustCompile(`^found no matching overload for '([^']*)' applied to '(.*)'`)
	syntax     = regexp.MustCompile(`(?s)^Syntax error: (.*)`)
)

// translate converts the errors of CEL to faults, in words for people who don't
// know its type system.
func (e *Env) translate(issues *cel.Issues) []fault {
	var faults []fault
	for _, err := range issues.Errors() {
		f := fault{start: err.Location, message: text.Message(err.Message)}
		if m := undeclared.FindStringSubmatch(err.Message); m != nil {
			f.message = "there is no function " + text.Quote(m[1], text.Short)
			if near := text.Nearest(m[1], e.functions); near != "" {
				f.hint = "did you mean " + near + "?"
			}
		} else if m := overload.FindStringSubmatch(err.Message); m != nil {
			f.message = text.Message(fmt.Sprintf("%s is not possible with %s", operator(m[1]), m[2]))
			if strings.Contains(m[2], "int") && strings.Contains(m[2], "double") {
				f.hint = "make both the same, with double() or int()"
			}
		} else if m := syntax.FindStringSubmatch(err.Message); m != nil {
			said, _, _ := strings.Cut(m[1], " expecting ")
			f.message = text.Message("this is not an expression: " + strings.Replace(said, "'<EOF>'", "end", 1))
			return append(faults, f) // those that follow are consequences
		}
		faults = append(faults, f)
	}
	return faults
}

// operator turns _+_ into +.
func operator(name string) string {
	if trimmed := strings.Trim(name, "_"); strings.HasPrefix(name, "_") && trimmed != "" {
		return trimmed
	}
	return name
}

func join(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

func tooLarge(hint, format string, args ...any) error {
	return &jobhost.Error{Code: jobhost.CodeTooLarge, Message: fmt.Sprintf(format, args...), Hint: hint}
}
