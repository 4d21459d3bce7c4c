package main

import (
	"slices"
	"testing"

	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// A file with a part that isn't known is taken for one of a newer jobhost.
func TestSchemasAreKnown(t *testing.T) {
	t.Parallel()
	var names []string
	for _, s := range schemas() {
		names = append(names, s.Name)
	}
	if known := sqlitedb.Known(); !slices.Equal(names, known) {
		t.Errorf("the store has the parts %q, and %q are known", names, known)
	}
}
