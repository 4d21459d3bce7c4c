package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// numberer tells the tables of an array apart: the TOML library gives all of
// them the same path. The second [[schedule]] gets "schedule", "#2".
type numberer map[string]int

// path returns the path of a key that begins at a place in the text.
func (n numberer) path(key []string, at place, text string) []string {
	if strings.HasPrefix(text[at.key:], "[[") {
		array := pathKey(key)
		n[array]++
		return append(slices.Clone(key), element(n[array]))
	}
	for i := len(key) - 1; i > 0; i-- {
		if count := n[pathKey(key[:i])]; count > 0 {
			return slices.Concat(key[:i], []string{element(count)}, key[i:])
		}
	}
	return key
}

// rename lets the places of an array's tables be found by names instead of
// numbers; tables without a name keep their number.
func (a *atlas) rename(array string, names []string) {
	for _, key := range slices.Collect(maps.Keys(a.places)) {
		path := strings.Split(key, "\x00")
		if len(path) < 2 || path[0] != array {
			continue
		}
		var n int
		if _, err := fmt.Sscanf(path[1], "#%d", &n); err != nil || n < 1 || n > len(names) || names[n-1] == "" {
			continue
		}
		path[1] = names[n-1]
		a.places[pathKey(path)] = a.places[key]
	}
}

// element is how a table of an array, counted from 1, is called in paths.
func element(n int) string { return fmt.Sprintf("#%d", n) }
