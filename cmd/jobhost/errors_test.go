package main

import (
	"errors"
	"fmt"
	"go/build"
	"slices"
	"testing"

	"github.com/jobhost/jobhost"
)

// TestSplitWrapped: errors that were joined keep their fields below what wraps them.
func TestSplitWrapped(t *testing.T) {
	t.Parallel()
	a, b := jobhost.Invalid("a", "", "a is wrong"), jobhost.Invalid("b", "", "b is wrong")
	err := fmt.Errorf("start workflow: %w", errors.Join(a, b))
	var told []string
	for _, one := range split(err) {
		e, _ := errors.AsType[*jobhost.Error](one)
		told = append(told, e.Field+": "+one.Error())
	}
	want := []string{"a: start workflow: a is wrong", "b: start workflow: b is wrong"}
	if !slices.Equal(told, want) {
		t.Errorf("got %q, want %q", told, want)
	}
	both := fmt.Errorf("%w, %w", a, b)
	if got := split(both); len(got) != 1 {
		t.Errorf("one sentence about two errors became %q", got)
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	one, two := errors.New("one"), errors.New("two")
	for _, tt := range []struct {
		err  error
		want []error
	}{
		{nil, nil}, // or each reload that went well would be told as a fault
		{one, []error{one}},
		{errors.Join(one, errors.Join(two, one)), []error{one, two, one}},
	} {
		if got := split(tt.err); !slices.Equal(got, tt.want) {
			t.Errorf("split(%v) is %v", tt.err, got)
		}
	}
}

// The program has time zones with it. That can't be tried on a machine that has them too.
func TestTimeZonesAreInTheProgram(t *testing.T) {
	t.Parallel()
	p, err := build.ImportDir(".", 0)
	if err != nil || !slices.Contains(p.Imports, "time/tzdata") {
		t.Errorf("it imports %v, %v", p.Imports, err)
	}
}
