package draw

import (
	"fmt"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/plan"
)

// statuses are those with their own colours, in light and dark.
func statuses() []struct {
	status        jobhost.StepStatus
	fill, onLight string
	dark, onDark  string
} {
	return []struct {
		status        jobhost.StepStatus
		fill, onLight string
		dark, onDark  string
	}{
		{jobhost.StepPending, "#f6f8fa", "#1f2328", "#21262d", "#e6edf3"},
		{jobhost.StepRunning, "#ddf4ff", "#0a3069", "#0c2d6b", "#cae8ff"},
		{jobhost.StepRetrying, "#fff8c5", "#4d2d00", "#4b2900", "#f8e3a1"},
		{jobhost.StepCompleted, "#dafbe1", "#033a16", "#04260f", "#aff5b4"},
		{jobhost.StepFailed, "#ffebe9", "#67060c", "#490202", "#ffdcd7"},
		{jobhost.StepSkipped, "#eaeef2", "#57606a", "#161b22", "#8b949e"},
		{jobhost.StepCancelled, "#eaeef2", "#57606a", "#161b22", "#8b949e"},
	}
}

// Mermaid draws a plan as a flowchart for https://mermaid.js.org. Steps are n0,
// n1, …; needs are arrows, and fallbacks dotted ones.
func Mermaid(p *plan.Plan, o Options) string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for i := range p.Steps {
		s := &p.Steps[i]
		fmt.Fprintf(&b, "  n%d[\"%s<br>%s\"]", i, mermaidText(s.Name), mermaidText(what(s)))
		if status := o.status(s); Mark(status) != "" {
			b.WriteString(":::" + string(status))
		}
		b.WriteString("\n")
	}
	for _, e := range edges(p) {
		arrow := "-->"
		if e.fallback {
			arrow = "-. fallback .->"
		}
		fmt.Fprintf(&b, "  n%d %s n%d\n", e.from, arrow, e.to)
	}
	if o.Status != nil {
		for _, s := range statuses() {
			fmt.Fprintf(&b, "  classDef %s fill:%s,color:%s\n", s.status, s.fill, s.onLight)
		}
	}
	return b.String()
}

// mermaidText writes everything except letters, digits and a few signs as
// entities, which begin with # in Mermaid.
func mermaidText(s string) string {
	var b strings.Builder
	for _, r := range clean(s, 60) {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == ' ', r == '.', r == '-', r == '_', r == '?':
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "#%d;", r)
		}
	}
	return b.String()
}

// DOT draws a plan in the language of https://graphviz.org.
func DOT(p *plan.Plan, o Options) string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n  rankdir=TB\n  node [shape=box style=\"rounded,filled\" fillcolor=white fontname=\"sans-serif\"]\n", dotText(p.Workflow.Name))
	for i := range p.Steps {
		s := &p.Steps[i]
		fmt.Fprintf(&b, "  n%d [label=%s", i, dotText(s.Name, what(s)))
		status := o.status(s)
		for _, c := range statuses() {
			if c.status == status {
				fmt.Fprintf(&b, " fillcolor=%q fontcolor=%q", c.fill, c.onLight)
			}
		}
		b.WriteString("]\n")
	}
	for _, e := range edges(p) {
		style := ""
		if e.fallback {
			style = ` [style=dashed label="fallback"]`
		}
		fmt.Fprintf(&b, "  n%d -> n%d%s\n", e.from, e.to, style)
	}
	b.WriteString("}\n")
	return b.String()
}

// dotText writes a quoted string of lines. In it a backslash begins an escape,
// such as \N for the name of the node, and a quote ends it; entities are
// interpreted too.
func dotText(lines ...string) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "&", "&amp;")
	for i, line := range lines {
		lines[i] = escape.Replace(clean(line, 60))
	}
	return `"` + strings.Join(lines, `\n`) + `"`
}
