package hosttest

import (
	"sync"

	"github.com/jobhost/jobhost"
)

// testReload wants a reload to report the worker, to disturb no job, and to
// refuse what is not there.
func testReload(s *setup) {
	held := s.submit(later())
	before := s.worker()
	for _, name := range []string{"", "test"} {
		report, err := s.server.Reload(s.ctx, name)
		s.check(err)
		after := s.worker()
		if len(report.Workers) != 1 || len(report.NeedsRestart) != 0 {
			s.Fatalf("reload reported %+v, want the worker test", report)
		}
		w := report.Workers[0]
		if w.Name != "test" || w.Change != jobhost.WorkerChanged && w.Change != jobhost.WorkerUnchanged {
			s.Errorf("reload reported %+v, want test as changed or unchanged", w)
		}
		if w.SHA256 != after.SHA256 || w.Version != after.Version || after.Version < before.Version || after.LoadedAt.Before(before.LoadedAt) {
			s.Errorf("reload reported %+v, but the worker is %+v", w, after)
		}
	}
	s.wantState(s.job(held), jobhost.Scheduled)
	s.wantState(s.finish(spec("echo", "x")), jobhost.Succeeded)
	for _, name := range []string{"nobody", "No Name", "../test", "te/st"} {
		_, err := s.server.Reload(s.ctx, name)
		if code := jobhost.CodeOf(err); code != jobhost.CodeNotFound && code != jobhost.CodeInvalid {
			s.Errorf("reload of %q: got error %v (code %q), want not_found or invalid", name, err, code)
		}
	}
}

// testReloadAtOnce wants reloads to take turns rather than to fail.
func testReloadAtOnce(s *setup) {
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, err := s.server.Reload(s.ctx, ""); err != nil {
				s.Errorf("reload: %v", err)
			}
		})
	}
	s.wantState(s.finish(spec("echo", "x")), jobhost.Succeeded)
	group.Wait()
}

func (s *setup) worker() jobhost.WorkerStatus {
	s.Helper()
	workers, err := s.server.Workers(s.ctx)
	s.check(err)
	if len(workers) != 1 {
		s.Fatalf("got workers %+v, want test", workers)
	}
	return workers[0]
}
