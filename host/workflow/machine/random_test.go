package machine_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/machine"
)

// TestAgainstReference lets random workflows take random courses, with events
// that come twice and jobs that are revived, and compares each step of the way
// with the reference. JOBHOST_CHAOS=1 (make chaos) asks for many more.
func TestAgainstReference(t *testing.T) {
	t.Parallel()
	groups := 5 // of 100 workflows each
	if chaos() {
		groups = 100
	}
	for i := range groups {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) { newWalk(rt).run() })
		})
	}
}

func chaos() bool { return os.Getenv("JOBHOST_CHAOS") != "" }

// walk is a random course of a random workflow.
type walk struct {
	rt   *rapid.T
	s    *site
	ref  *reference
	past []machine.Event // that may come again
}

func chance(rt *rapid.T, percent int, label string) bool {
	return rapid.IntRange(0, 99).Draw(rt, label) >= 100-percent
}

func newWalk(rt *rapid.T) *walk {
	eval := &answers{when: map[int]string{}, terminate: map[int]string{}, fanOut: map[int]int{}, input: map[int]string{}}
	n := rapid.IntRange(1, 10).Draw(rt, "steps")
	needs, fallbacks := map[string]string{}, map[string]string{}
	steps := make([]machine.Node, n, 2*n)
	limited := chance(rt, 25, "limited")
	mirrored := chance(rt, 30, "mirrored")
	for i := range n {
		steps[i].Name = fmt.Sprint("s", i)
		for j := range i {
			if chance(rt, 35, "edge") {
				needs[steps[i].Name] += fmt.Sprint(" s", j)
			}
		}
		switch rapid.IntRange(0, 5).Draw(rt, "fallback") {
		case 0:
			fallbacks[steps[i].Name] = "worker"
		case 1:
			f := machine.Node{Name: fmt.Sprint("f", i)}
			for j := range i {
				if chance(rt, 10, "edge") {
					needs[f.Name] += fmt.Sprint(" s", j)
				}
			}
			fallbacks[steps[i].Name] = f.Name
			if steps = append(steps, f); chance(rt, 30, "chain") {
				g := machine.Node{Name: fmt.Sprint("g", i)}
				steps = append(steps, g)
				fallbacks[f.Name] = g.Name
			}
		}
	}
	if mirrored {
		slices.Reverse(steps)
	}
	for i := range steps {
		drawNode(rt, &steps[i], eval, i, limited)
	}
	g := link(steps, needs, fallbacks)
	if limited {
		g.MaxParallel = rapid.IntRange(1, 3).Draw(rt, "max")
	}
	if chance(rt, 20, "timeout") {
		g.Timeout = time.Hour
	}
	g.HasOutput = chance(rt, 20, "output")
	s := newSite(rt, g, eval)
	return &walk{rt: rt, s: s, ref: newReference(s)}
}

func drawNode(rt *rapid.T, node *machine.Node, eval *answers, i int, limited bool) {
	pick := func(label string, list ...string) string { return rapid.SampledFrom(list).Draw(rt, label) }
	node.Kind = rapid.SampledFrom([]machine.Kind{machine.Job, machine.Job, machine.Job, machine.Child, machine.Signal, machine.Sleep}).Draw(rt, "kind")
	node.Signal, node.Sleep = node.Name, time.Minute
	if chance(rt, 75, "continue") {
		node.OnError = jobhost.ContinueWorkflow
	}
	node.WhenSkipped = jobhost.WhenSkipped(pick("skipped", "", "skip", "run", "run_always"))
	eval.when[i] = pick("when", "", "", "", "false", "error")
	node.HasWhen = eval.when[i] != ""
	eval.terminate[i] = pick("terminate", "", "", "", "", "", "", "", "", "", "true", "error", "false")
	node.HasTerminate = eval.terminate[i] != ""
	if chance(rt, 30, "limit") {
		node.Limit = 10 * time.Second
	}
	if node.Kind == machine.Job && !limited {
		node.HasFanOut = chance(rt, 20, "fan-out")
		eval.fanOut[i] = rapid.IntRange(-1, 2).Draw(rt, "elements")
	}
	if node.Kind == machine.Job && chance(rt, 20, "input") {
		node.HasInput = !node.HasFanOut
		if !limited {
			eval.input[i] = pick("input", "", "", "error")
		}
	}
}

func (w *walk) run() {
	w.send(machine.Event{What: machine.Started})
	for range rapid.IntRange(5, 60).Draw(w.rt, "events") {
		w.move()
	}
	for range 200 { // and then all goes well
		if w.s.end != nil {
			return
		}
		w.settle(true)
	}
	w.rt.Fatalf("it doesn't end: %s", w.s.statuses())
}

// move lets something happen.
func (w *walk) move() {
	switch what := rapid.IntRange(0, 99).Draw(w.rt, "move"); {
	case what < 60:
		w.settle(false)
	case what < 75:
		e := w.past[rapid.IntRange(0, len(w.past)-1).Draw(w.rt, "again")]
		if w.s.advance(e) {
			w.rt.Fatalf("it changes something when it comes again: %+v", e)
		}
	case what < 85:
		w.revive()
	case what < 93:
		w.retry()
	case what < 98:
		w.signal(rapid.IntRange(0, len(w.s.graph.Steps)-1).Draw(w.rt, "step"))
	case what < 99:
		w.send(machine.Event{What: machine.Cancelled, Reason: "no more"})
	default:
		w.nonsense()
	}
}

// settle ends something that is open.
func (w *walk) settle(well bool) {
	var choices []func()
	for _, run := range w.s.openRuns() {
		choices = append(choices, func() { w.end(run, well) })
	}
	for _, timer := range w.timers() {
		if timer.Step != machine.None || !well {
			choices = append(choices, func() { w.due(timer) })
		}
	}
	for i, node := range w.s.graph.Steps {
		if row := w.s.rows[i]; w.s.end == nil && node.Kind == machine.Signal && row != nil && row.Status == jobhost.StepRunning {
			choices = append(choices, func() { w.signal(i) })
		}
	}
	if len(choices) > 0 {
		choices[rapid.IntRange(0, len(choices)-1).Draw(w.rt, "what")]()
	}
}

func (w *walk) timers() (list []machine.Timer) {
	for timer := range w.s.timers {
		list = append(list, timer)
	}
	slices.SortFunc(list, func(a, b machine.Timer) int { return slices.Compare([]byte(fmt.Sprint(a)), []byte(fmt.Sprint(b))) })
	return list
}

func (w *walk) end(run machine.Run, well bool) {
	outcome := fine
	if !well {
		outcome = rapid.SampledFrom([]fact{fine, fine, fine, dead, dead, gone, none}).Draw(w.rt, "outcome")
	}
	e := machine.Event{Run: run, What: map[fact]machine.Happening{
		none: machine.JobRetrying, fine: machine.JobSucceeded, dead: machine.JobDead, gone: machine.JobCancelled,
	}[outcome]}
	if w.s.children[run] != "" {
		if outcome == none {
			return
		}
		e.What = machine.ChildEnded
		e.Status = map[fact]jobhost.WorkflowStatus{
			fine: jobhost.WorkflowCompleted, dead: jobhost.WorkflowFailed, gone: jobhost.WorkflowCancelled,
		}[outcome]
	}
	if outcome == dead || outcome == none {
		e.Failure = &jobhost.Failure{Code: "boom"}
	}
	w.note(run, outcome)
	w.send(e)
}

func (w *walk) note(run machine.Run, f fact) {
	if f == none {
		return
	}
	if run.Fallback {
		w.ref.replaced[run.Step] = f
	} else {
		w.ref.own[run.Step] = f
	}
}

func (w *walk) due(timer machine.Timer) {
	switch {
	case timer.Step == machine.None:
	case timer.Purpose == machine.Wake:
		w.note(timer.Run, fine)
	default:
		w.note(timer.Run, dead)
	}
	w.send(machine.Event{What: machine.TimerDue, Timer: timer})
}

func (w *walk) signal(i int) {
	node := &w.s.graph.Steps[i]
	if node.Kind != machine.Signal || w.s.end != nil {
		return
	}
	w.ref.signals[i]++
	w.send(machine.Event{What: machine.Signalled, Signal: node.Signal, ID: fmt.Sprint(w.s.now), Payload: []byte("1")})
}

// revive opens a job or a workflow again that has ended in vain.
func (w *walk) revive() {
	var runs []machine.Run
	for run, end := range w.s.ends {
		kind := w.s.graph.Steps[run.Step].Kind
		isJob := kind == machine.Job || run.Fallback
		if w.s.jobs[run]+w.s.children[run] == "" && (end == machine.JobDead || end == machine.JobCancelled && isJob) {
			runs = append(runs, run)
		}
	}
	if len(runs) == 0 {
		return
	}
	slices.SortFunc(runs, func(a, b machine.Run) int { return slices.Compare([]byte(fmt.Sprint(a)), []byte(fmt.Sprint(b))) })
	run := rapid.SampledFrom(runs).Draw(w.rt, "revived")
	what, list := machine.JobRevived, w.s.jobs
	if !run.Fallback && w.s.graph.Steps[run.Step].Kind == machine.Child {
		what, list = machine.ChildResumed, w.s.children
	}
	w.again(machine.Event{What: what, Run: run}, func() {
		list[run] = "revived"
		if run.Fallback {
			delete(w.ref.replaced, run.Step)
		} else {
			w.ref.again(run.Step)
		}
		w.past = slices.DeleteFunc(w.past, func(e machine.Event) bool { return e.Run == run || e.Timer.Run == run })
	})
}

// retry asks for a step, or for what made the workflow fail.
func (w *walk) retry() {
	step := rapid.IntRange(machine.None, len(w.s.graph.Steps)-1).Draw(w.rt, "retried")
	w.again(machine.Event{What: machine.Retry, Step: step}, func() {
		if step == machine.None {
			step = w.culprit()
		}
		w.ref.again(step)
	})
}

func (w *walk) culprit() int {
	if w.s.end == nil {
		return machine.None
	}
	return w.s.end.Step
}

// again sends an event after which something is done again; forget tells the
// reference what, if the workflow agrees.
func (w *walk) again(e machine.Event, forget func()) {
	if _, changes := w.s.try(e); !changes {
		return
	}
	if w.s.end != nil {
		look, err := w.s.machine.Look(w.s.record)
		if err != nil {
			w.rt.Fatalf("%v", err)
		}
		var before []jobhost.StepStatus
		for i := range w.s.graph.Steps {
			before = append(before, look.Step(i))
		}
		w.ref.resume(before)
	}
	forget()
	if !w.s.advance(e) {
		w.rt.Fatalf("it changes nothing the second time: %+v", e)
	}
	w.ref.compare()
}

func (w *walk) nonsense() {
	run := machine.Run{Step: rapid.IntRange(-3, 30).Draw(w.rt, "step"), Number: 99}
	what := machine.Happening(rapid.IntRange(0, 20).Draw(w.rt, "what"))
	if what == machine.Cancelled || what == machine.Retry {
		return
	}
	if w.s.advance(machine.Event{What: what, Run: run, Timer: machine.Timer{Run: run, Purpose: machine.Limit}}) {
		w.rt.Fatalf("%d of %v changes something", what, run)
	}
}

// send delivers an event that means something, and compares.
func (w *walk) send(e machine.Event) {
	busy := len(w.s.jobs) + len(w.s.children)
	w.s.log = nil
	if w.s.end != nil {
		return
	}
	if w.s.advance(e) {
		w.ref.compare()
		began := slices.ContainsFunc(w.s.log, func(entry string) bool { return entry[:2] == "su" || entry[:2] == "be" })
		if now := len(w.s.jobs) + len(w.s.children); began && w.s.graph.MaxParallel > 0 && now > max(w.s.graph.MaxParallel, busy) {
			w.rt.Fatalf("%d run at one time", now)
		}
	}
	w.past = append(w.past, e)
}
