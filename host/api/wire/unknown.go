package wire

import (
	"fmt"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

// Unknown returns the error for a name that is none of known; what says of
// what kind the name is, such as "member". The hint is the nearest name there
// is, or all of them.
func Unknown(what, name string, known []string) error {
	hint := "use " + strings.Join(known, ", ")
	if best := text.Nearest(name, known); best != "" {
		hint = fmt.Sprintf("did you mean %s?", best)
	} else if len(known) == 0 {
		hint = "there are none here"
	}
	return &jobhost.Error{
		Code: jobhost.CodeInvalid, Field: text.Clip(name, 80), Hint: hint,
		Message: fmt.Sprintf("unknown %s %q", what, text.Clip(name, 80)),
	}
}
