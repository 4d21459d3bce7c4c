package rig

// Reduce returns statements and expressions of a program that can be cut while
// the program still fails, as many as it finds. Nodes is their total number;
// fails generates the program with a cut and tries it.
func Reduce(nodes int, fails func(cut map[int]bool) bool) map[int]bool {
	cut := map[int]bool{}
	for size := nodes / 2; size >= 1; size /= 2 {
		for from := 0; from < nodes; from += size {
			more := map[int]bool{}
			for n := range cut {
				more[n] = true
			}
			for n := from; n < min(from+size, nodes); n++ {
				more[n] = true
			}
			if len(more) > len(cut) && fails(more) {
				cut = more
			}
		}
	}
	return cut
}
