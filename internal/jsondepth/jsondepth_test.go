package jsondepth_test

import (
	"strings"
	"testing"

	"github.com/jobhost/jobhost/internal/jsondepth"
)

func TestExceeds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		most int
		want int
	}{
		{`1`, 0, -1},
		{`{}`, 0, 0},
		{`{"a":[1]}`, 2, -1},
		{`{"a":[1]}`, 1, 5},
		{`["[[[",{"\"[":"]"}]`, 2, -1},
		{`[[],[],[]]`, 2, -1},
		{strings.Repeat("[", 65) + strings.Repeat("]", 65), 64, 64},
	} {
		if got := jsondepth.Exceeds([]byte(tt.text), tt.most); got != tt.want {
			t.Errorf("%s is nested more than %d deep at %d, want %d", tt.text, tt.most, got, tt.want)
		}
	}
}
