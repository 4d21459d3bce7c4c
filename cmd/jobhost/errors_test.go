package main

import (
	"errors"
	"go/build"
	"slices"
	"testing"
)

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
