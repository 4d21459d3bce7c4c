package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// numberer tells the tables of an array apart: the TOML library gives all of
// them the same path. The second [[schedule]] gets "schedule", "#2".
type numberer map[string]int

// path returns the path of a key that begins at a place in the text. The tables of
// an array in a table of another count from 1 in each.
func (n numberer) path(key []string, at place, text string) []string {
	path := make([]string, 0, len(key)+1)
	for i, k := range key {
		path = append(path, k)
		array := pathKey(path)
		if i == len(key)-1 {
			if strings.HasPrefix(text[at.key:], "[[") {
				n[array]++
				path = append(path, element(n[array]))
			}
		} else if count := n[array]; count > 0 {
			path = append(path, element(count))
		}
	}
	return path
}

// rename lets the places of the tables of arrays be found by names instead of
// numbers; tables without a name keep their number. The arrays are there by [pathKey].
func (ps *positions) rename(arrays map[string][]string) {
	for _, key := range slices.Collect(maps.Keys(ps.places)) {
		for from := 0; ; {
			i := strings.Index(key[from:], "\x00#")
			if i < 0 {
				break
			}
			from += i + 2
			number, rest, more := strings.Cut(key[from:], "\x00")
			array := key[:from-2]
			n, err := strconv.Atoi(number)
			names := arrays[array]
			if err != nil || n < 1 || n > len(names) || names[n-1] == "" {
				continue
			}
			renamed := array + "\x00" + names[n-1]
			if more {
				renamed += "\x00" + rest
			}
			ps.places[renamed] = ps.places[key]
			break
		}
	}
}

// element is how a table of an array, counted from 1, is called in paths.
func element(n int) string { return fmt.Sprintf("#%d", n) }
