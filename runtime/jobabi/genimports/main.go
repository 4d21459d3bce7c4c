// Genimports writes the lists of host functions in the SDKs from the one table
// in package jobabi. Run it in the repository's root, as `make imports` does.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/jobhost/jobhost/runtime/jobabi"
)

func main() {
	for _, l := range lists() {
		if err := l.update("."); err != nil {
			fmt.Fprintln(os.Stderr, "genimports:", err)
			os.Exit(1) //nolint:forbidigo // a command owns its process
		}
	}
}

// list is a place in a file that names the host functions.
type list struct {
	file string
	// comment begins a line comment in the file's language.
	comment string
	// line declares a function, in one or more lines, with a newline at the end.
	line func(jobabi.Function) string
	// without are functions that the language's SDK has no use for.
	without []string
	// spaced puts an empty line around each function.
	spaced bool
}

// The lines between which the list is written.
const (
	begin = "Generated from runtime/jobabi by \"make imports\": don't edit."
	end   = "End of what is generated."
)

func (l *list) update(root string) error {
	path := root + "/" + l.file
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := l.apply(string(old))
	if err != nil || text == string(old) {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// apply returns a file's text with its list replaced.
func (l *list) apply(old string) (string, error) {
	head, rest, ok := strings.Cut(old, l.comment+" "+begin+"\n")
	_, tail, closed := strings.Cut(rest, l.comment+" "+end)
	if !ok || !closed {
		return "", fmt.Errorf("%s lacks the lines %q and %q", l.file, l.comment+" "+begin, l.comment+" "+end)
	}
	indent := head[strings.LastIndexByte(head, '\n')+1:]
	var b strings.Builder
	b.WriteString(head + l.comment + " " + begin + "\n")
	space := ""
	if l.spaced {
		space = "\n"
	}
	b.WriteString(space)
	for _, f := range jobabi.Functions() {
		if !slices.Contains(l.without, f.Name) {
			b.WriteString(l.line(f) + space)
		}
	}
	b.WriteString(indent + l.comment + " " + end + tail)
	return b.String(), nil
}
