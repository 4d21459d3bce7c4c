package pgdb_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// TestSilentServer: of several servers one doesn't answer. A host leads all the same, for longer than a lease: what it
// costs to find that out is paid once.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	silent, way := postgres.NewProxy(t, server.Address()), postgres.NewProxy(t, server.Address())
	silent.Stall(postgres.ToServer)
	url := fmt.Sprintf("postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/postgres?sslmode=disable&target_session_attrs=read-write", silent.Port(), way.Port())
	h := lead(t, open(t, url, server.Schema(t), "a"))
	after := time.After(2 * h.db.Lease())
	for n := int64(1); ; n++ {
		if sum, err := h.add("x", 1); err != nil || sum != n {
			t.Fatalf("got %d, %v, want %d", sum, err, n)
		}
		if n%100 == 0 {
			way.Cut()
		}
		select {
		case <-after:
			return
		case <-time.After(time.Millisecond):
		}
	}
}
