package sqlitequeue_test

import (
	"sync"
	"testing"

	"github.com/jobhost/jobhost/host/queue/queuetest"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
)

func TestStore(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		h := queuetest.Harness{
			Open: func(t testing.TB) record.Store { return open(t, sqlitequeue.Options{}) },
		}
		queuetest.Run(t, h)
		t.Run("workflows", func(t *testing.T) { queuetest.RunWorkflows(t, h) })
	})
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		var dirs sync.Map // the directory of each store
		openDir := func(t testing.TB, dir string) record.Store {
			// Strict stores differ by their syncs alone, which the power tests look at.
			s := open(t, sqlitequeue.Options{Dir: dir, Relaxed: true})
			dirs.Store(s, dir)
			return s
		}
		h := queuetest.Harness{
			Open: func(t testing.TB) record.Store { return openDir(t, t.TempDir()) },
			Reopen: func(t testing.TB, s record.Store) record.Store {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				dir, _ := dirs.Load(s)
				return openDir(t, dir.(string))
			},
		}
		queuetest.Run(t, h)
		t.Run("workflows", func(t *testing.T) { queuetest.RunWorkflows(t, h) })
	})
}
