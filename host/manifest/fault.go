package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

// Fault is one thing that is wrong in a manifest.
type Fault struct {
	File string `json:"file"`
	// Line and Column count from 1, Column in characters; 0 = the fault has no place.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Key is the section or setting at fault, such as "worker.wordcount.timeout".
	Key     string `json:"key,omitempty"`
	Message string `json:"message"`
	// Hint says what to do, where that is known.
	Hint string `json:"hint,omitempty"`
}

// Error returns the fault as one line:
//
//	manifest.toml:12:3: worker.wordcount: timeot is not a setting; did you mean timeout?
func (f *Fault) Error() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", f.Line, f.Column)
	}
	if f.Key != "" {
		b.WriteString(": " + f.Key)
	}
	b.WriteString(": " + f.Message)
	if f.Hint != "" {
		b.WriteString("; " + f.Hint)
	}
	return b.String()
}

// Unwrap returns the fault as a [jobhost.Error] with code invalid.
func (f *Fault) Unwrap() error {
	return &jobhost.Error{Code: jobhost.CodeInvalid, Field: f.Key, Message: f.Message, Hint: f.Hint}
}

// Faults are the faults of a manifest, sorted by position. At most a hundred
// are listed; a last one without a place then tells how many more there are.
type Faults []*Fault

// Error returns the faults, one on each line.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the faults one by one.
func (fs Faults) Unwrap() []error {
	errs := make([]error, len(fs))
	for i, f := range fs {
		errs[i] = f
	}
	return errs
}

// settle sorts the faults and cuts the list. Those of the manifest come first, and
// then those of other files.
func (fs Faults) settle(manifest string) Faults {
	order := func(f *Fault) string {
		if f.File == manifest {
			return ""
		}
		return f.File
	}
	slices.SortFunc(fs, func(a, b *Fault) int {
		return cmp.Or(
			cmp.Compare(order(a), order(b)),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Key, b.Key),
			cmp.Compare(a.Message, b.Message),
		)
	})
	if more := len(fs) - maxFaults; more > 0 {
		fs = append(fs[:maxFaults:maxFaults], &Fault{
			File:    manifest,
			Message: fmt.Sprintf("%d more faults are not listed", more),
		})
	}
	return fs
}

// wrong makes the error of a setting's value. The message continues the name
// of the setting: "timeout: 48h is not between …".
func wrong(hint, format string, args ...any) error {
	return &jobhost.Error{Code: jobhost.CodeInvalid, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// keyText writes a path of keys as TOML would.
func keyText(path []string) string {
	parts := make([]string, len(path))
	for i, p := range path {
		parts[i] = p
		if !bare(p) {
			parts[i] = text.Quote(p, text.Short)
		}
	}
	return strings.Join(parts, ".")
}

// bare reports whether TOML wants no quotes around a key, and the key is short.
func bare(key string) bool {
	for _, c := range []byte(key) {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return key != "" && len(key) <= 64
}
