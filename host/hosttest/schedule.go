package hosttest

import (
	"slices"
	"time"

	"github.com/jobhost/jobhost"
)

func testSchedules(s *setup) {
	list, err := s.server.Schedules(s.ctx)
	s.check(err)
	if len(list) != 1 || list[0].Name != "yearly" || len(list[0].Next) != 1 {
		s.Fatalf("got schedules %+v, want yearly with its next tick", list)
	}
	got, err := s.server.Schedule(s.ctx, "yearly")
	s.check(err)
	switch {
	case got.Worker != "test" || got.Cron != "0 0 1 1 *" || got.Timezone != "Europe/Berlin" || got.Every != 0:
		s.Errorf("got %+v", got)
	case got.CatchUp != jobhost.CatchUpOne || got.Overlap != jobhost.OverlapSkip || got.Paused || got.PausedAt != nil:
		s.Errorf("got %+v, want the defaults", got)
	case got.LastJob != "" || got.LastTick != nil || got.Waiting != 0 || got.Refused != "":
		s.Errorf("got %+v, want no past", got)
	}
	if len(got.Next) < 5 || !got.Next[0].Equal(list[0].Next[0]) || !got.Next[0].After(time.Now()) {
		s.Fatalf("got ticks %v", got.Next)
	}
	for _, tick := range got.Next {
		if shown := tick.Format("01-02 15:04 -07:00"); shown != "01-01 00:00 +01:00" {
			s.Errorf("got tick %v, want it in its zone", tick)
		}
	}
	if !slices.IsSortedFunc(got.Next, time.Time.Compare) {
		s.Errorf("got ticks %v, want them to rise", got.Next)
	}
	for _, name := range []string{"nobody", "", "../x", "a b", "Yearly"} {
		code := jobhost.CodeInvalid
		if name == "nobody" {
			code = jobhost.CodeNotFound
		}
		s.Logf("%q", name)
		_, err := s.server.Schedule(s.ctx, name)
		s.wantCode(err, code)
		_, err = s.server.RunSchedule(s.ctx, name)
		s.wantCode(err, code)
		_, err = s.server.PauseSchedule(s.ctx, name)
		s.wantCode(err, code)
		_, err = s.server.ResumeSchedule(s.ctx, name)
		s.wantCode(err, code)
	}
}

func testRunSchedule(s *setup) {
	var ids []string
	for range 2 {
		receipt, err := s.server.RunSchedule(s.ctx, "yearly")
		s.check(err)
		ids = append(ids, receipt.ID)
		job := s.wait(receipt.ID)
		s.wantState(job, jobhost.Succeeded)
		s.wantResult(job.ID, 0, []byte("happy new year"))
		if job.Labels[jobhost.LabelSchedule] != "yearly" || job.Labels[jobhost.LabelTick] != "" {
			s.Errorf("got labels %v, want the schedule and no tick", job.Labels)
		}
	}
	got, err := s.server.Schedule(s.ctx, "yearly")
	s.check(err)
	if ids[0] == ids[1] || got.LastJob != ids[1] || got.LastTick != nil {
		s.Errorf("after the jobs %v got %+v", ids, got)
	}
}

func testPauseSchedule(s *setup) {
	began := time.Now().Add(-time.Minute) // the server's clock may be another one
	for range 2 {
		got, err := s.server.PauseSchedule(s.ctx, "yearly")
		s.check(err)
		if !got.Paused || got.PausedAt == nil || got.PausedAt.Before(began) || len(got.Next) != 0 {
			s.Errorf("got %+v, want it paused", got)
		}
	}
	receipt, err := s.server.RunSchedule(s.ctx, "yearly")
	s.check(err)
	s.wantState(s.wait(receipt.ID), jobhost.Succeeded)
	for range 2 {
		got, err := s.server.ResumeSchedule(s.ctx, "yearly")
		s.check(err)
		if got.Paused || got.PausedAt != nil || len(got.Next) == 0 {
			s.Errorf("got %+v, want it to go on", got)
		}
	}
}
