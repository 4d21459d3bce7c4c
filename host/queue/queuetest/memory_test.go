package queuetest_test

import (
	"testing"

	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/queuetest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, queuetest.Harness{
		Open: func(t testing.TB) queue.Store { return closing(t, queuetest.NewMemory()) },
		Reopen: func(t testing.TB, s queue.Store) queue.Store {
			return closing(t, s.(*queuetest.Memory).Reopen())
		},
	})
}

func closing(t testing.TB, s *queuetest.Memory) queue.Store {
	t.Cleanup(func() { _ = s.Close() })
	return s
}
