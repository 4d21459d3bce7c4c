package statetest_test

import (
	"testing"

	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/statetest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	statetest.Run(t, statetest.Harness{
		Open: func(t testing.TB) state.Store { return closing(t, statetest.NewMemory()) },
		Reopen: func(t testing.TB, s state.Store) state.Store {
			return closing(t, s.(*statetest.Memory).Reopen())
		},
	})
}

func closing(t testing.TB, s *statetest.Memory) state.Store {
	t.Cleanup(func() { _ = s.Close() })
	return s
}
