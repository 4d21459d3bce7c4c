package workertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jobhost/jobhost"
)

// File is the file of an output. Its name determines how it is compared.
type File struct {
	path   string // where it is, or would be written
	data   []byte
	exists bool
	inline *value // from case.toml, instead of a file
}

// format is how an output is compared.
type format int

const (
	exact format = iota // byte by byte
	text                // .txt: ignoring trailing newlines
	document
	lines // of JSON
)

func (f *File) format() format {
	switch filepath.Ext(f.path) {
	case ".txt":
		return text
	case ".json":
		return document
	case ".jsonl", ".ndjson":
		return lines
	}
	return exact
}

// compare compares an output with the file.
func (f *File) compare(got []byte, ignore []string) []Difference {
	const what = "output"
	if f.inline != nil {
		return f.inline.compare(what, got)
	}
	switch f.format() {
	case text:
		want, got := trimmed(f.data), trimmed(got)
		if bytes.ContainsRune(want, '\n') || bytes.ContainsRune(got, '\n') { // so that the comparison doesn't mention line ends
			want, got = append(want, '\n'), append(got, '\n')
		}
		return compareBytes(what, want, got)
	case document:
		return f.compareAs(canonical, got, ignore)
	case lines:
		return f.compareAs(canonicalLines, got, ignore)
	}
	return compareBytes(what, f.data, got)
}

// trimmed returns a text without trailing newlines.
func trimmed(b []byte) []byte { return slices.Clip(bytes.TrimRight(b, "\r\n")) }

// compareAs compares both after converting them with read.
func (f *File) compareAs(read func([]byte, []string) (string, error), got []byte, ignore []string) []Difference {
	want, err := read(f.data, ignore)
	if err != nil && f.exists {
		return []Difference{{What: "output", Want: "the JSON of " + f.path, Got: "a file that is wrong: " + err.Error()}}
	}
	have, err := read(got, ignore)
	if err != nil {
		return []Difference{{What: "output", Want: shown([]byte(want)), Got: shown(got) + " (" + err.Error() + ")"}}
	}
	return compareText("output", want, have)
}

// write makes the file match an output.
func (f *File) write(got []byte, ignore []string) error {
	got, err := f.written(got, ignore)
	if err != nil {
		return fmt.Errorf("write %s: the output can't be in it: %w", f.path, err)
	}
	if err := os.WriteFile(f.path, got, 0o644); err != nil { //nolint:gosec // it is a source file of the user's, like its neighbours
		return fmt.Errorf("write the output: %w", err)
	}
	f.data, f.exists = got, true
	return nil
}

// written is the file's content for an output: readable, and without ignored fields.
func (f *File) written(got []byte, ignore []string) ([]byte, error) {
	switch f.format() {
	case text:
		return append(bytes.Clone(trimmed(got)), '\n'), nil
	case document:
		s, err := canonical(got, ignore)
		if err != nil || len(ignore) > 0 {
			return []byte(s), err
		}
		var b bytes.Buffer // keeps the names in their original order
		err = json.Indent(&b, bytes.TrimSpace(got), "", "  ")
		b.WriteByte('\n')
		return b.Bytes(), err
	case lines:
		s, err := canonicalLines(got, ignore)
		if err != nil || len(ignore) > 0 {
			return []byte(s), err
		}
	case exact:
	}
	return got, nil
}

// nameFor returns a file name for an output that has none yet: one that says how to
// compare it, if that can be derived from the output.
func nameFor(stem string, got []byte) string {
	base := "output"
	if stem != "" {
		base = stem + ".out"
	}
	first := bytes.TrimLeft(got, " \t\r\n")
	switch {
	case len(first) > 0 && (first[0] == '{' || first[0] == '[') && json.Valid(got):
		return base + ".json"
	case len(got) > 0 && isText(got):
		return base + ".txt"
	}
	return base
}

// readFile reads a file of a case, whose name must not lead out of the folder.
func readFile(dir, name string) ([]byte, error) {
	if !filepath.IsLocal(name) && !strings.HasPrefix(filepath.ToSlash(name), "../") {
		return nil, &jobhost.Error{Code: jobhost.CodeInvalid, Message: fmt.Sprintf("%q is not a path from the case's folder", name)}
	}
	return readSome(filepath.Join(dir, filepath.FromSlash(name)))
}

// readSome reads a file of an acceptable size.
func readSome(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read a case: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("read a case: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("read a case: %s is not a regular file", path)
	}
	data, err := io.ReadAll(io.LimitReader(file, MaxFileBytes+1))
	if err == nil && len(data) > MaxFileBytes {
		err = errors.New("it is larger than 64 MiB")
	}
	if err != nil {
		return nil, fmt.Errorf("read a case: %s: %w", path, err)
	}
	return data, nil
}
