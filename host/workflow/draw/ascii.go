package draw

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/jobhost/jobhost/host/workflow/plan"
)

// ASCII draws a plan for a terminal: boxes and lines, or a list if those would be
// wider than the terminal or too many to follow.
func ASCII(p *plan.Plan, o Options) string {
	const defaultWidth, mostSteps = 100, 60
	if o.Width == 0 {
		o.Width = defaultWidth
	}
	if len(p.Steps) <= mostSteps {
		labels, widths := make([][2]string, len(p.Steps)), make([]int, len(p.Steps))
		for i := range p.Steps {
			s := &p.Steps[i]
			name := s.Name
			if m := Mark(o.status(s)); m != "" {
				name = m + " " + name
			}
			labels[i] = [2]string{clean(name, 40), what(s)}
			widths[i] = (max(width(labels[i][0]), width(labels[i][1])) + 4) | 1 // odd, so that centers meet
		}
		if l := arrange(p, widths, 2); l != nil && l.columns() <= o.Width {
			return paint(l, labels)
		}
	}
	return list(p, o)
}

// list writes a line for each step, by level.
func list(p *plan.Plan, o Options) string {
	longest := 0
	for i := range p.Steps {
		longest = max(longest, width(p.Steps[i].Name))
	}
	var b strings.Builder
	level := -1
	for _, i := range byLevel(p) {
		s := &p.Steps[i]
		if s.Level != level {
			level = s.Level
			fmt.Fprintf(&b, "level %d\n", level)
		}
		m := cmp.Or(Mark(o.status(s)), "•")
		fmt.Fprintf(&b, "  %s %-*s  %s", m, longest, s.Name, what(s))
		if len(s.Needs) > 0 {
			b.WriteString("  ← " + needs(p, s))
		}
		if s.FallbackOf >= 0 {
			fmt.Fprintf(&b, "  ↷ fallback of %s", p.Steps[s.FallbackOf].Name)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// needs lists the first few steps that a step needs.
func needs(p *plan.Plan, s *plan.Step) string {
	const most = 6
	var names []string
	for _, need := range s.Needs[:min(len(s.Needs), most)] {
		names = append(names, p.Steps[need].Name)
	}
	text := strings.Join(names, ", ")
	if more := len(s.Needs) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func byLevel(p *plan.Plan) []int {
	all := make([]int, len(p.Steps))
	for i := range all {
		all[i] = i
	}
	slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(p.Steps[a].Level, p.Steps[b].Level) })
	return all
}

// Directions of lines in a cell; a cell with several is a corner or a crossing.
const (
	up = 1 << iota
	down
	left
	right
	dotted
)

// canvas is a grid of cells with lines, under a grid of text.
type canvas struct {
	lines [][]int
	text  [][]rune
}

func (c *canvas) grow(rows, columns int) {
	for len(c.lines) < rows {
		c.lines = append(c.lines, make([]int, columns))
		c.text = append(c.text, make([]rune, columns))
	}
}

func (c *canvas) vertical(x, from, to, style int) {
	for y := from; y < to; y++ {
		c.lines[y][x] |= down | style
		c.lines[y+1][x] |= up | style
	}
}

func (c *canvas) horizontal(y, from, to, style int) {
	for x := min(from, to); x < max(from, to); x++ {
		c.lines[y][x] |= right | style
		c.lines[y][x+1] |= left | style
	}
}

func (c *canvas) write(x, y int, s string) {
	for _, r := range s {
		c.text[y][x] = r
		x++
	}
}

func (c *canvas) String() string {
	const signs = " ╵╷│╴┘┐┤╶└┌├─┴┬┼"
	runes := []rune(signs)
	var b strings.Builder
	for y := range c.lines {
		var row strings.Builder
		for x, cell := range c.lines[y] {
			r := runes[cell&(up|down|left|right)]
			if t := c.text[y][x]; t != 0 {
				r = t
			} else if cell&dotted != 0 {
				switch r {
				case '│':
					r = '┊'
				case '─':
					r = '┄'
				}
			}
			row.WriteRune(r)
		}
		b.WriteString(strings.TrimRight(row.String(), " ") + "\n")
	}
	return b.String()
}

// boxHeight is the number of rows of a box: two borders and two lines.
const boxHeight = 4

// paint draws a layout. Between two layers each node with a line to the side gets a
// row of its own for its lines.
func paint(l *layout, labels [][2]string) string {
	c := &canvas{}
	columns := l.columns()
	y := 0
	for k, layer := range l.layers {
		tracks := l.tracks(layer)
		bottom := y + boxHeight - 1
		next := bottom + len(tracks) + 2
		c.grow(bottom+1, columns)
		for _, i := range layer {
			l.nodes[i].draw(c, y, labels)
		}
		if k < len(l.layers)-1 {
			c.grow(next+1, columns)
			for _, i := range layer {
				l.connect(c, i, bottom, bottom+1+slices.Index(tracks, i), next)
			}
		}
		y = next
	}
	return c.String()
}

func (n *node) draw(c *canvas, y int, labels [][2]string) {
	if n.step < 0 {
		style := 0
		if n.dashed {
			style = dotted
		}
		c.vertical(n.x, y, y+boxHeight-1, style)
		return
	}
	inner := n.width - 2
	c.write(n.x, y, "┌"+strings.Repeat("─", inner)+"┐")
	for k, label := range labels[n.step] {
		c.write(n.x, y+1+k, "│ "+label+strings.Repeat(" ", inner-1-width(label))+"│")
	}
	c.write(n.x, y+boxHeight-1, "└"+strings.Repeat("─", inner)+"┘")
	if len(n.up) > 0 {
		c.write(n.center(), y, "▼")
	}
	if len(n.down) > 0 {
		c.write(n.center(), y+boxHeight-1, "┬")
	}
}

// connect draws the lines down from a node. track is below bottom if the node has
// none.
func (l *layout) connect(c *canvas, i, bottom, track, next int) {
	n := &l.nodes[i]
	for _, j := range n.down {
		to := &l.nodes[j]
		style := 0
		if to.dashed {
			style = dotted
		}
		if n.center() == to.center() {
			c.vertical(n.center(), bottom, next, style)
			continue
		}
		c.vertical(n.center(), bottom, track, style)
		c.horizontal(track, n.center(), to.center(), style)
		c.vertical(to.center(), track, next, style)
	}
}

// tracks returns the nodes of a layer that need a row, from top to bottom. A line
// that lands below another node must turn after that node's line has turned away, or
// the two would look like one.
func (l *layout) tracks(layer []int) []int {
	var turning []int
	for _, i := range layer {
		n := &l.nodes[i]
		if slices.ContainsFunc(n.down, func(j int) bool { return l.nodes[j].center() != n.center() }) {
			turning = append(turning, i)
		}
	}
	lands := func(i, column int) bool {
		return slices.ContainsFunc(l.nodes[i].down, func(j int) bool { return l.nodes[j].center() == column })
	}
	var order []int
	for len(turning) > 0 {
		// The first one in whose column no other lands before it turns.
		at := slices.IndexFunc(turning, func(i int) bool {
			return !slices.ContainsFunc(turning, func(j int) bool { return j != i && lands(i, l.nodes[j].center()) })
		})
		at = max(at, 0) // they wait for each other
		order = append(order, turning[at])
		turning = slices.Delete(turning, at, at+1)
	}
	return order
}
