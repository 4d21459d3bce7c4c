package main

import (
	"fmt"
	"strings"

	"github.com/jobhost/jobhost/internal/text"
)

// Names in a module are its author's choice: in number, and in length up to that of the file.
const (
	mostNameBytes = 200
	mostNames     = 100 // in a line for people
)

// clipName returns a name with mostNameBytes at the most, and a mark if it was cut.
func clipName(name string) string { return text.Clip(name, mostNameBytes) }

// clipNames clips each name. It makes nil an empty list, as orEmpty does.
func clipNames(names []string) []string {
	clipped := make([]string, len(names))
	for n, name := range names {
		clipped[n] = clipName(name)
	}
	return clipped
}

// joinNames joins the first names, and says how many more there are.
func joinNames(names []string, separator string) string {
	joined := strings.Join(names[:min(len(names), mostNames)], separator)
	if more := len(names) - mostNames; more > 0 {
		joined += fmt.Sprintf("%s… and %d more", separator, more)
	}
	return joined
}
