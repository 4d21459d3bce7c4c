package queuetest_test

import (
	"testing"

	"github.com/jobhost/jobhost/host/queue/queuetest"
	"github.com/jobhost/jobhost/host/queue/record"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, queuetest.Harness{
		Open: func(t testing.TB) record.Store { return closing(t, queuetest.NewMemory()) },
		Reopen: func(t testing.TB, s record.Store) record.Store {
			return closing(t, s.(*queuetest.Memory).Reopen())
		},
	})
}

func closing(t testing.TB, s *queuetest.Memory) record.Store {
	t.Cleanup(func() { _ = s.Close() })
	return s
}
