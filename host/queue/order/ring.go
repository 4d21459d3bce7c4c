package order

// ring is the order in which groups take turns: a queue of their numbers.
type ring struct {
	refs  []ref // a power of two
	first int
	n     int
}

func (r *ring) at(i int) ref { return r.refs[(r.first+i)&(len(r.refs)-1)] }

func (r *ring) push(x ref) {
	if r.n == len(r.refs) {
		grown := make([]ref, max(2*r.n, 8))
		for i := range r.n {
			grown[i] = r.at(i)
		}
		r.refs, r.first = grown, 0
	}
	r.refs[(r.first+r.n)&(len(r.refs)-1)] = x
	r.n++
}

// pop removes the first; there must be one.
func (r *ring) pop() ref {
	x := r.refs[r.first]
	r.first = (r.first + 1) & (len(r.refs) - 1)
	r.n--
	return x
}

// rotate moves the first n to the end.
func (r *ring) rotate(n int) {
	for range n {
		r.push(r.pop())
	}
}
