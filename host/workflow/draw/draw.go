// Package draw draws plans of workflows: as text for terminals, for Mermaid and
// Graphviz, and as a picture. The same plan always gives the same drawing.
//
// Text from a definition, such as conditions and names of signals, is escaped for each
// format: it can't break out of its label.
package draw

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/plan"
)

// Options say what a drawing shows in addition to the plan. The zero value shows the plan
// alone.
type Options struct {
	// Status returns the status of a step of a run, or ""; nil = there is no run.
	Status func(step string) jobhost.StepStatus
	// Width is how many columns ASCII may use; 0 = 100.
	Width int
}

func (o *Options) status(s *plan.Step) jobhost.StepStatus {
	if o.Status == nil {
		return ""
	}
	return o.Status(s.Name)
}

// Mark returns a one-column sign for a status.
func Mark(s jobhost.StepStatus) string {
	switch s {
	case jobhost.StepPending:
		return "·"
	case jobhost.StepRunning:
		return "▶"
	case jobhost.StepRetrying:
		return "↻"
	case jobhost.StepCompleted:
		return "✓"
	case jobhost.StepFailed:
		return "✗"
	case jobhost.StepSkipped:
		return "–"
	case jobhost.StepCancelled:
		return "⊘"
	}
	return ""
}

// what describes a step's action in a few words.
func what(s *plan.Step) string {
	text := string(plan.KindOf(s.Step))
	switch plan.KindOf(s.Step) {
	case plan.KindWorker:
		text = s.Worker
		if s.Entry != "" {
			text += "." + s.Entry
		}
	case plan.KindWorkflow:
		text += " " + s.Workflow
	case plan.KindSignal:
		text += " " + s.Signal
	case plan.KindSleep:
		text += " " + s.Sleep.String()
	}
	switch {
	case s.FanOut != nil:
		text += " ×n"
	case s.Tasks > 1:
		text += fmt.Sprintf(" ×%d", s.Tasks)
	}
	if s.When != nil {
		text += " ?"
	}
	if s.FallbackWorker != "" {
		text += " ↷ " + s.FallbackWorker
	}
	return clean(text, 40)
}

// clean turns text into one printable line of at most that many characters.
func clean(s string, most int) string {
	var b strings.Builder
	n := 0
	for _, r := range strings.ToValidUTF8(s, "�") {
		if n++; n > most {
			b.WriteString("…")
			break
		}
		if !unicode.IsPrint(r) {
			r = '�'
		}
		b.WriteRune(r)
	}
	return b.String()
}

func width(s string) int { return utf8.RuneCountInString(s) }

// edge is a line from one step to another, both by index.
type edge struct {
	from, to int
	fallback bool
}

// edges returns the lines of a plan, in order.
func edges(p *plan.Plan) []edge {
	var all []edge
	for i := range p.Steps {
		s := &p.Steps[i]
		for _, next := range s.Next {
			all = append(all, edge{from: i, to: int(next)})
		}
		if s.Fallback >= 0 {
			all = append(all, edge{from: i, to: s.Fallback, fallback: true})
		}
	}
	return all
}
