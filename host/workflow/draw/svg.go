package draw

import (
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/jobhost/jobhost/host/workflow/plan"
)

// Sizes of the picture, in pixels.
const (
	charWidth   = 7
	stepHeight  = 46
	layerGap    = 54
	margin      = 16
	wideRow     = 12     // steps in a row of a large picture
	mostSVGLine = 20_000 // beyond which lines are left out
)

// SVG draws a plan as a self-contained picture that follows the reader's choice
// of light or dark. Each step has its status as a class and its name as
// data-step.
func SVG(p *plan.Plan, o Options) string {
	widths := make([]int, len(p.Steps))
	for i := range p.Steps {
		s := &p.Steps[i]
		widths[i] = max(width(clean(s.Name, 40))+2, width(what(s)))*charWidth + 24
	}
	l := arrange(p, widths, 24)
	var pic picture
	if l != nil {
		pic = fromLayout(l)
	} else {
		pic = inRows(p, widths)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`+"\n",
		pic.width, pic.height, pic.width, pic.height, escape("workflow "+p.Workflow.Name))
	b.WriteString(style())
	b.WriteString(`<defs><marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" class="head"/></marker></defs>` + "\n")
	lines := pic.lines
	if l == nil {
		lines = direct(p, pic)
	}
	if len(lines) > mostSVGLine {
		fmt.Fprintf(&b, `<text x="%d" y="12">%d lines are not drawn</text>`+"\n", margin, len(lines))
		lines = nil
	}
	for _, line := range lines {
		b.WriteString(line)
	}
	for i := range p.Steps {
		writeStep(&b, &p.Steps[i], &o, pic.at[i], widths[i])
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// picture has the positions of everything.
type picture struct {
	width, height int
	at            map[int]point // of steps, the upper left corner
	lines         []string
}

type point struct{ x, y int }

func fromLayout(l *layout) picture {
	pic := picture{at: map[int]point{}, width: l.columns() + 2*margin, height: len(l.layers)*(stepHeight+layerGap) - layerGap + 2*margin}
	top := func(n *node) int { return margin + n.layer*(stepHeight+layerGap) }
	for i := range l.nodes {
		n := &l.nodes[i]
		if n.step < 0 {
			continue
		}
		pic.at[n.step] = point{margin + n.x, top(n)}
		for _, j := range n.down {
			pic.lines = append(pic.lines, l.curve(n, &l.nodes[j], top))
		}
	}
	return pic
}

// curve draws a line through its bends to the step at its end.
func (l *layout) curve(from, to *node, top func(*node) int) string {
	var d strings.Builder
	x, y := margin+from.center(), top(from)+stepHeight
	fmt.Fprintf(&d, "M%d %d", x, y)
	dashed := to.dashed
	for {
		nx, ny := margin+to.center(), top(to)
		fmt.Fprintf(&d, "C%d %d %d %d %d %d", x, y+layerGap/2, nx, ny-layerGap/2, nx, ny)
		if to.step >= 0 {
			return path(d.String(), dashed)
		}
		x, y = nx, ny+stepHeight
		fmt.Fprintf(&d, "V%d", y)
		to = &l.nodes[to.down[0]]
	}
}

func path(d string, dashed bool) string {
	class := "line"
	if dashed {
		class = "line fallback"
	}
	return fmt.Sprintf(`<path class="%s" d="%s" marker-end="url(#a)"/>`+"\n", class, d)
}

// inRows puts the steps of each level into rows, for plans too large for a
// layout.
func inRows(p *plan.Plan, widths []int) picture {
	pic := picture{at: map[int]point{}}
	x, y, level, inRow := margin, margin, 0, 0
	for _, i := range byLevel(p) {
		switch {
		case p.Steps[i].Level != level:
			level, inRow, x = p.Steps[i].Level, 0, margin
			y += stepHeight + layerGap
		case inRow == wideRow:
			inRow, x = 0, margin
			y += stepHeight + margin
		}
		pic.at[i] = point{x, y}
		x += widths[i] + margin
		inRow++
		pic.width = max(pic.width, x)
	}
	pic.width, pic.height = pic.width+margin, y+stepHeight+margin
	return pic
}

// direct draws lines without bends.
func direct(p *plan.Plan, pic picture) []string {
	all := edges(p)
	lines := make([]string, 0, len(all))
	for _, e := range all {
		from, to := pic.at[e.from], pic.at[e.to]
		lines = append(lines, path(fmt.Sprintf("M%d %dL%d %d", from.x+40, from.y+stepHeight, to.x+40, to.y), e.fallback))
	}
	return lines
}

func writeStep(b *strings.Builder, s *plan.Step, o *Options, at point, w int) {
	status := o.status(s)
	name := s.Name
	if m := Mark(status); m != "" {
		name = m + " " + name
	} else {
		status = ""
	}
	fmt.Fprintf(b, `<g class="step %s" data-step="%s"><title>%s</title><rect x="%d" y="%d" width="%d" height="%d" rx="6"/>`,
		status, escape(s.Name), escape(title(s)), at.x, at.y, w, stepHeight)
	fmt.Fprintf(b, `<text class="name" x="%d" y="%d">%s</text><text x="%d" y="%d">%s</text></g>`+"\n",
		at.x+w/2, at.y+19, escape(clean(name, 42)), at.x+w/2, at.y+35, escape(what(s)))
}

// title is the tooltip of a step.
func title(s *plan.Step) string {
	text := s.Name
	if s.Description != "" {
		text += ": " + s.Description
	}
	if s.When != nil {
		text += " (when " + s.When.Source() + ")"
	}
	return clean(text, 400)
}

func style() string {
	var b strings.Builder
	b.WriteString("<style>\ntext{font:12px ui-sans-serif,system-ui,sans-serif;text-anchor:middle;fill:#57606a}.name{font-weight:600;fill:#1f2328}" +
		"rect{fill:#fff;stroke:#8c959f}.line{fill:none;stroke:#8c959f;stroke-width:1.3}.fallback{stroke-dasharray:4 3}.head{fill:#8c959f}\n")
	for _, s := range statuses() {
		fmt.Fprintf(&b, ".%s rect{fill:%s}.%s text{fill:%s}\n", s.status, s.fill, s.status, s.onLight)
	}
	b.WriteString("@media (prefers-color-scheme:dark){text{fill:#9198a1}.name{fill:#f0f6fc}rect{fill:#0d1117;stroke:#6e7681}.line{stroke:#6e7681}.head{fill:#6e7681}\n")
	for _, s := range statuses() {
		fmt.Fprintf(&b, ".%s rect{fill:%s}.%s text{fill:%s}\n", s.status, s.dark, s.status, s.onDark)
	}
	b.WriteString("}\n</style>\n")
	return b.String()
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}
