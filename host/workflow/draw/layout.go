package draw

import (
	"cmp"
	"slices"

	"github.com/jobhost/jobhost/host/workflow/plan"
)

// node is a step in a layer, or a bend of a line that passes through it.
type node struct {
	step     int // -1 = a bend
	layer    int
	width    int
	x        int // of the left side
	up, down []int
	dashed   bool // the lines to it are those of a fallback
}

func (n *node) center() int { return n.x + n.width/2 }

// layout has the nodes of a plan in layers, each below those it needs (after Sugiyama:
// long lines get bends, and the order in each layer follows the neighbours).
type layout struct {
	nodes  []node
	layers [][]int
}

// maxNodes is the number of nodes, including bends, up to which the layout is
// optimised.
const maxNodes = 1_500

// arrange lays out a plan whose steps have these widths; nil = there are too many lines
// for a readable drawing.
func arrange(p *plan.Plan, widths []int, gap int) *layout {
	all := edges(p)
	bends := 0
	for _, e := range all {
		bends += p.Steps[e.to].Level - p.Steps[e.from].Level - 1
	}
	if len(p.Steps)+bends > maxNodes || len(all) > 2*maxNodes {
		return nil
	}
	l := &layout{layers: make([][]int, p.Levels)}
	for i := range p.Steps {
		l.add(node{step: i, layer: p.Steps[i].Level, width: widths[i], dashed: p.Steps[i].FallbackOf >= 0})
	}
	for _, e := range all {
		from := e.from
		for level := p.Steps[e.from].Level + 1; level < p.Steps[e.to].Level; level++ {
			bend := l.add(node{step: -1, layer: level, width: 1, dashed: e.fallback})
			l.join(from, bend)
			from = bend
		}
		l.join(from, e.to)
	}
	for range 4 {
		l.sortBy(func(n *node) []int { return n.up }, false)
		l.sortBy(func(n *node) []int { return n.down }, true)
	}
	l.sortBy(func(n *node) []int { return n.up }, false)
	l.place(gap)
	return l
}

func (l *layout) add(n node) int {
	l.nodes = append(l.nodes, n)
	i := len(l.nodes) - 1
	l.layers[n.layer] = append(l.layers[n.layer], i)
	return i
}

func (l *layout) join(from, to int) {
	l.nodes[from].down = append(l.nodes[from].down, to)
	l.nodes[to].up = append(l.nodes[to].up, from)
}

// sortBy orders each layer by the mean of the neighbours on one side.
func (l *layout) sortBy(neighbours func(*node) []int, upwards bool) {
	rank := make([]float64, len(l.nodes))
	for _, layer := range l.layers {
		for k, i := range layer {
			rank[i] = float64(k)
		}
	}
	for k := range l.layers {
		if upwards {
			k = len(l.layers) - 1 - k
		}
		layer := l.layers[k]
		middle := map[int]float64{}
		for _, i := range layer {
			middle[i] = rank[i]
			if near := neighbours(&l.nodes[i]); len(near) > 0 {
				sum := 0.0
				for _, j := range near {
					sum += rank[j]
				}
				middle[i] = sum / float64(len(near))
			}
		}
		slices.SortStableFunc(layer, func(a, b int) int { return cmp.Compare(middle[a], middle[b]) })
		for at, i := range layer {
			rank[i] = float64(at)
		}
	}
}

// place assigns columns: first below the middle of the nodes above, as far as there is
// room, then above the middle of those below.
func (l *layout) place(gap int) {
	for _, layer := range l.layers {
		x := 0
		for _, i := range layer {
			l.nodes[i].x = x
			x += l.nodes[i].width + gap
		}
	}
	for range 3 {
		for _, layer := range l.layers {
			l.align(layer, gap, func(n *node) []int { return n.up })
		}
		for _, layer := range slices.Backward(l.layers) {
			l.align(layer, gap, func(n *node) []int { return n.down })
		}
	}
	least := 0
	for i := range l.nodes {
		least = min(least, l.nodes[i].x)
	}
	for i := range l.nodes {
		l.nodes[i].x -= least
	}
}

// align moves the nodes of a layer to their preferred positions. Nodes in each other's
// way are moved as a block, to the mean of their preferences.
func (l *layout) align(layer []int, gap int, neighbours func(*node) []int) {
	type block struct{ first, count, x, sum, width int }
	var blocks []block
	for k, i := range layer {
		n := &l.nodes[i]
		want := n.x
		if near := neighbours(n); len(near) > 0 {
			sum := 0
			for _, j := range near {
				sum += l.nodes[j].center()
			}
			want = sum/len(near) - n.width/2
		}
		b := block{first: k, count: 1, x: want, sum: want, width: n.width}
		for len(blocks) > 0 {
			last := blocks[len(blocks)-1]
			if last.x+last.width+gap <= b.x {
				break
			}
			// b's preferences are for its left side, which is that far right of the
			// block's.
			b = block{
				first: last.first, count: last.count + b.count, sum: last.sum + b.sum - b.count*(last.width+gap),
				width: last.width + gap + b.width,
			}
			b.x = floorDiv(b.sum, b.count)
			blocks = blocks[:len(blocks)-1]
		}
		blocks = append(blocks, b)
	}
	for _, b := range blocks {
		x := b.x
		for _, i := range layer[b.first : b.first+b.count] {
			l.nodes[i].x = x
			x += l.nodes[i].width + gap
		}
	}
}

func floorDiv(a, b int) int {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// columns is how wide the layout is.
func (l *layout) columns() int {
	most := 0
	for i := range l.nodes {
		most = max(most, l.nodes[i].x+l.nodes[i].width)
	}
	return most
}
