package wire

import (
	"fmt"
	"strings"

	"github.com/jobhost/jobhost"
)

// Unknown returns the error for a name that is none of known; what says of
// what kind the name is, such as "member". The hint is the nearest name there
// is, or all of them.
func Unknown(what, name string, known []string) error {
	hint := "use " + strings.Join(known, ", ")
	if best := Nearest(name, known); best != "" {
		hint = fmt.Sprintf("did you mean %s?", best)
	} else if len(known) == 0 {
		hint = "there are none here"
	}
	return &jobhost.Error{
		Code: jobhost.CodeInvalid, Field: clip(name), Hint: hint,
		Message: fmt.Sprintf("unknown %s %q", what, clip(name)),
	}
}

// Nearest returns the name that word was probably meant to be, or "" when
// none is near: one typing error per three letters, in any case of letters.
func Nearest(word string, names []string) string {
	best, fewest := "", len(word)/3+1
	if len(word) > 64 {
		return ""
	}
	for _, name := range names {
		if n := distance(strings.ToLower(word), name); n < fewest {
			best, fewest = name, n
		}
	}
	return best
}

// distance counts the bytes to insert, delete or replace to get from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
