package process

import (
	"strconv"
	"testing"
)

// TestSuspects: one that was taken and became a suspect again counts from then on, and the oldest are forgotten.
func TestSuspects(t *testing.T) {
	t.Parallel()
	var s suspects
	s.add("again")
	if !s.take("again") || s.take("again") {
		t.Fatal("a suspect is taken once")
	}
	for i := range maxSuspects - 1 {
		s.add(strconv.Itoa(i))
	}
	s.add("again")
	s.add("again")
	for i := range maxSuspects - 1 {
		s.add("later " + strconv.Itoa(i))
	}
	if len(s.known) != maxSuspects || len(s.order) != maxSuspects {
		t.Fatalf("%d are known, %d in order; want %d", len(s.known), len(s.order), maxSuspects)
	}
	if s.take("0") || !s.take("again") {
		t.Error("not the oldest were forgotten")
	}
}
