package hosttest

import "github.com/jobhost/jobhost"

// operate changes the mode of the worker.
func (s *setup) operate(verb string) jobhost.WorkerStatus {
	s.Helper()
	status, err := map[string]func() (jobhost.WorkerStatus, error){
		"pause":  func() (jobhost.WorkerStatus, error) { return s.server.PauseWorker(s.ctx, "test") },
		"drain":  func() (jobhost.WorkerStatus, error) { return s.server.DrainWorker(s.ctx, "test") },
		"resume": func() (jobhost.WorkerStatus, error) { return s.server.ResumeWorker(s.ctx, "test") },
	}[verb]()
	s.check(err)
	return status
}

// testPause wants a paused worker to take jobs and to hold them.
func testPause(s *setup) {
	scheduled := s.submit(later())
	for range 2 { // once more is fine
		if mode := s.operate("pause").Mode; mode != jobhost.WorkerPaused {
			s.Errorf("a paused worker is %s", mode)
		}
	}
	held := s.submit(spec("echo", "x"))
	s.wantState(s.job(held), jobhost.Held)
	s.wantState(s.job(scheduled), jobhost.Scheduled)
	s.wantHeld("paused", held)
	if n := s.worker().Tasks; n["held"] != 1 || n["ready"] != 0 {
		s.Errorf("got numbers %v, want one held", n)
	}
	cancelled := s.submit(spec("echo", "x"))
	_, err := s.server.Cancel(s.ctx, cancelled)
	s.check(err)
	if mode := s.operate("resume").Mode; mode != jobhost.WorkerRunning {
		s.Errorf("a resumed worker is %s", mode)
	}
	s.wantState(s.wait(held), jobhost.Succeeded)
	s.wantState(s.job(cancelled), jobhost.Cancelled)
	s.operate("resume") // once more is fine
}

// testDrain wants a draining worker to take no jobs, and to know those it has.
func testDrain(s *setup) {
	known := later()
	known.ID = "known"
	s.submit(known)
	s.operate("drain")
	_, err := s.server.Submit(s.ctx, spec("echo", "x"))
	s.wantCode(err, jobhost.CodeUnavailable)
	receipt, err := s.server.Submit(s.ctx, known)
	s.check(err)
	if !receipt.Deduplicated {
		s.Errorf("got %+v, want the job that is there", receipt)
	}
	s.operate("resume")
	s.wantState(s.finish(spec("echo", "x")), jobhost.Succeeded)
	for name, code := range map[string]jobhost.Code{"nobody": jobhost.CodeNotFound, "No Name": ""} {
		_, err := s.server.PauseWorker(s.ctx, name)
		if got := jobhost.CodeOf(err); err == nil || code != "" && got != code {
			s.Errorf("pause of %q: got error %v", name, err)
		}
	}
}

func testScale(s *setup) {
	for _, slots := range []int{3, 1, 2} {
		status, err := s.server.ScaleWorker(s.ctx, "test", slots)
		s.check(err)
		if status.Slots != slots {
			s.Errorf("got %d slots, want %d", status.Slots, slots)
		}
		s.wantState(s.finish(spec("echo", "x")), jobhost.Succeeded)
	}
	for _, slots := range []int{0, -1, jobhost.MaxSlots + 1} {
		_, err := s.server.ScaleWorker(s.ctx, "test", slots)
		s.wantCode(err, jobhost.CodeInvalid)
	}
	_, err := s.server.ScaleWorker(s.ctx, "nobody", 1)
	s.wantCode(err, jobhost.CodeNotFound)
}

// testResetBreaker wants a worker without a breaker to say so.
func testResetBreaker(s *setup) {
	_, err := s.server.ResetBreaker(s.ctx, "nobody")
	s.wantCode(err, jobhost.CodeNotFound)
	_, err = s.server.ResetBreaker(s.ctx, "test")
	s.wantCode(err, jobhost.CodeConflict)
}

// wantHeld checks that exactly these jobs are reported as held, for this reason.
func (s *setup) wantHeld(code string, ids ...string) {
	s.Helper()
	page, err := s.server.Jobs(s.ctx, jobhost.Filter{State: jobhost.Held})
	s.check(err)
	if len(page.Jobs) != len(ids) {
		s.Errorf("%d jobs are held, want %d", len(page.Jobs), len(ids))
	}
	for _, id := range ids {
		why, err := s.server.Why(s.ctx, id)
		s.check(err)
		if why.State != jobhost.Held || why.Code != code || why.Reason == "" || why.Ends == "" {
			s.Errorf("got %+v, want held for %s", why, code)
		}
	}
}
