package text

import "strings"

// Nearest returns the name that word was probably meant to be, or "": the one
// with the fewest typing errors, if those are no more than a third of its
// length, or else the longest that contains the word or is contained in it.
func Nearest(word string, names []string) string {
	const longest = 64 // beyond which it is not a misspelling
	best, fewest := "", max(1, len(word)/3)+1
	if len(word) > longest {
		return ""
	}
	for _, name := range names {
		if max(len(word)-len(name), len(name)-len(word)) >= fewest {
			continue // they differ by at least that much
		}
		if d := typos(word, name); d < fewest {
			best, fewest = name, d
		}
	}
	if best != "" || len(word) < 3 {
		return best
	}
	for _, name := range names {
		if len(name) > len(best) && (strings.Contains(name, word) || strings.Contains(word, name)) {
			best = name
		}
	}
	return best
}

// typos counts the bytes to insert, delete, replace or swap with their
// neighbour to get from a to b, ignoring case.
func typos(a, b string) int {
	// Three rows of the usual matrix: swaps look two rows back.
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			differ := 1
			if lower(a[i-1]) == lower(b[j-1]) {
				differ = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+differ)
			if i > 1 && j > 1 && lower(a[i-1]) == lower(b[j-2]) && lower(a[i-2]) == lower(b[j-1]) {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

func lower(c byte) byte {
	switch {
	case c >= 'A' && c <= 'Z':
		return c + 'a' - 'A'
	case c == '-':
		return '_' // pool-size is pool_size
	}
	return c
}
