package host_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/journal"
	"github.com/jobhost/jobhost/runtime"
)

func TestTaskThatEndedTheHostRunsApart(t *testing.T) {
	t.Parallel()
	s := newCrashSite(t)
	id := s.submit(jobhost.Spec{})
	s.die(fatal, journal.Running, id)
	h, _ := s.start()
	job := wait(t, h, id)
	if job.State != jobhost.Succeeded || job.Tasks[0].Attempt != 2 || len(job.Failures) != 1 {
		t.Fatalf("%+v", job)
	}
	f := job.Failures[0]
	if f.Code != jobhost.FailHostCrash || f.Category != jobhost.CategorySystem || strings.Contains(f.Message, "fatal") ||
		!strings.Contains(f.Context, `"cause":"fatal error: out of memory"`) || !strings.Contains(f.Context, `"file":"crashes/`) {
		t.Errorf("%+v", f)
	}
	if places := s.engine.places(); len(places) != 1 || places[0] != runtime.SandboxProcess {
		t.Errorf("it ran %v", places)
	}
	if other := wait(t, h, submit(t, h, jobhost.Spec{})); other.State != jobhost.Succeeded || s.engine.places()[1] != runtime.SandboxInline {
		t.Errorf("another job: %+v, %v", other, s.engine.places())
	}
}

// What was killed from outside counts too, but no worker gets a strike for it, and what had
// ended already is as if it had not begun.
func TestKilledHost(t *testing.T) {
	t.Parallel()
	s := newCrashSite(t)
	ran, waited, ended := s.submit(jobhost.Spec{}), s.submit(jobhost.Spec{}), s.submit(jobhost.Spec{})
	s.die("", journal.Running, ran)
	s.die("", journal.Waiting, waited)
	s.die("", journal.Settling, ended)
	h, stop := s.start()
	for id, attempts := range map[string]int{ran: 2, waited: 1, ended: 1} {
		if job := wait(t, h, id); job.State != jobhost.Succeeded || job.Tasks[0].Attempt != attempts {
			t.Errorf("%+v, want attempt %d", job, attempts)
		}
	}
	stop()
	s.forgotten()
}

// When what the host did has ended it, settling may have been that.
func TestEndedWhileItSettled(t *testing.T) {
	t.Parallel()
	s := newCrashSite(t)
	id := s.submit(jobhost.Spec{MaxAttempts: 1})
	s.die(fatal, journal.Settling, id)
	h, _ := s.start()
	if job := wait(t, h, id); job.State != jobhost.Dead || job.Failures[0].Code != jobhost.FailHostCrash {
		t.Errorf("%+v", job)
	}
}

// A worker that has ended the host twice is held, over restarts too, until it is resumed.
func TestTwoStrikes(t *testing.T) {
	t.Parallel()
	s := newCrashSite(t)
	id := s.submit(jobhost.Spec{MaxAttempts: 2, Payload: []byte("die")})
	s.die(fatal, journal.Running, id) // the first
	h, stop := s.start()
	job := wait(t, h, id) // in a process, the second
	if f := job.Failures; job.State != jobhost.Dead || len(f) != 2 || f[1].Code != jobhost.FailHostCrash || !strings.Contains(f[1].Message, "segmentation fault") {
		t.Fatalf("%+v", job)
	}
	next := submit(t, h, jobhost.Spec{})
	s.held(h, next, "has ended the host, or a process of its own in its place, 2 times")
	stop()

	h, stop = s.start()
	s.held(h, next, "crashes/")
	if _, err := h.StartFiber(t.Context(), jobhost.FiberSpec{ID: "f", Worker: "test"}); jobhost.CodeOf(err) != jobhost.CodeUnavailable {
		t.Errorf("a fiber of it starts: %v", err)
	}
	if _, err := h.ResumeWorker(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	if job := wait(t, h, next); job.State != jobhost.Succeeded {
		t.Errorf("%+v", job)
	}
	stop()
	s.forgotten()
}

func TestStrikesEndWithAnotherVersion(t *testing.T) {
	t.Parallel()
	s := newCrashSite(t)
	first, second := s.submit(jobhost.Spec{MaxAttempts: 1}), s.submit(jobhost.Spec{MaxAttempts: 1})
	s.die(fatal, journal.Running, first)
	_, stop := s.start()
	stop()
	<-time.After(time.Millisecond) // crashes are told apart by their time
	s.die(fatal, journal.Running, second)
	h, _ := s.start()
	next := submit(t, h, jobhost.Spec{})
	s.held(h, next, "2 times")
	s.reload(h, 3, "")
	s.held(h, next, "2 times")
	s.reload(h, 3, "mended")
	if job := wait(t, h, next); job.State != jobhost.Succeeded {
		t.Errorf("%+v", job)
	}
}

// Without a process that it could run in, such a task is held rather than run inline again.
func TestNoProcessApart(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*placed){
		"refused": func(e *placed) { e.refuses = true }, "none": func(e *placed) { e.plain = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCrashSite(t)
			change(s.engine)
			id := s.submit(jobhost.Spec{})
			s.die("", journal.Running, id)
			h, _ := s.start()
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for range tick.C {
				if why, err := h.Why(t.Context(), id); err != nil || why.State == jobhost.Held {
					break
				}
			}
			s.held(h, id, "there is no process of its own")
			if places := s.engine.places(); len(places) > 0 {
				t.Errorf("it ran %v", places)
			}
		})
	}
}

// A worker that only names its failure like that has ended nothing.
func TestWorkerThatPretendsToCrash(t *testing.T) {
	t.Parallel()
	s := newCrashSite(t)
	id := s.submit(jobhost.Spec{MaxAttempts: 2, Payload: []byte("pretend")})
	s.die("", journal.Running, id)
	h, _ := s.start()
	job := wait(t, h, id)
	if f := job.Failures; job.State != jobhost.Dead || f[len(f)-1].Code != jobhost.FailCrash {
		t.Errorf("%+v", job)
	}
	if workers, err := h.Workers(t.Context()); err != nil || workers[0].Disabled != "" {
		t.Errorf("%+v, %v", workers, err)
	}
}
