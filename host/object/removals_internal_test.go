package object

import (
	"strconv"
	"testing"

	"github.com/jobhost/jobhost/state/payload"
)

// TestRemovals: an object that is removed again, as after a failed write of its record, counts once.
func TestRemovals(t *testing.T) {
	t.Parallel()
	var r removals
	twice := payload.Ref{Key: "twice"}
	r.add([]payload.Ref{twice, twice})
	for i := range mostRemovals - 1 {
		r.add([]payload.Ref{{Key: strconv.Itoa(i)}})
	}
	if !r.has(twice.Key) {
		t.Errorf("an object is forgotten although only %d were removed", mostRemovals)
	}
	r.add([]payload.Ref{{Key: "one more"}})
	if r.has(twice.Key) || !r.has("0") || len(r.ring) != mostRemovals || len(r.keys) != mostRemovals {
		t.Errorf("%d entries of %d objects are kept, want the latest %d", len(r.ring), len(r.keys), mostRemovals)
	}
}
