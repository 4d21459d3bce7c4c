package jobhost_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
)

func TestDeadFilterCheck(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		filter jobhost.DeadFilter
		field  string
	}{
		"zero":                   {jobhost.DeadFilter{}, ""},
		"a code":                 {jobhost.DeadFilter{Code: "E_TEMP"}, ""},
		"a code of a line":       {jobhost.DeadFilter{Code: "a\nb"}, "code"},
		"a code that is no text": {jobhost.DeadFilter{Code: "\xff"}, "code"},
		"a long code":            {jobhost.DeadFilter{Code: strings.Repeat("x", jobhost.MaxDeadText+1)}, "code"},
		"a text of a line":       {jobhost.DeadFilter{Text: "a\nb"}, "text"},
		"a category":             {jobhost.DeadFilter{Category: "luck"}, "category"},
		"a worker":               {jobhost.DeadFilter{Worker: "a b"}, "worker"},
		"a limit":                {jobhost.DeadFilter{Limit: -1}, "limit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			err := tc.filter.Check()
			if e, ok := errors.AsType[*jobhost.Error](err); ok && e.Code == jobhost.CodeInvalid {
				got = e.Field
			}
			if got != tc.field || (err == nil) != (tc.field == "") {
				t.Errorf("got %v, want an error of the field %q", err, tc.field)
			}
		})
	}
}
