package expr

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/jobhost/jobhost"
)

// FuzzCompile checks for any text that it is refused with faults that are fit
// to print, or gives the same JSON each time, within bounds.
func FuzzCompile(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		lines, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(lines)) {
			f.Add(strings.TrimSpace(line))
		}
	}
	env := setup(f)
	f.Fuzz(func(t *testing.T, source string) {
		p, err := env.Compile(source, Place{Kind: Output, Step: "fetch", Item: true})
		if err != nil {
			for line := range strings.Lines(faults(err)) {
				if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return !unicode.IsPrint(r) }) {
					t.Fatalf("not fit to print: %q", line)
				}
			}
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		first, err := p.JSON(ctx, data())
		if errors.Is(err, context.DeadlineExceeded) {
			t.Fatal("it ran too long")
		}
		second, again := p.JSON(ctx, data())
		if !bytes.Equal(first, second) || (err == nil) != (again == nil) {
			t.Fatalf("got %s, %v and then %s, %v", first, err, second, again)
		}
		if err == nil && (!json.Valid(first) || len(first) > MaxResultBytes) {
			t.Fatalf("%d bytes are not a value: %.100q", len(first), first)
		}
		if _, known := errors.AsType[*jobhost.Error](err); err != nil && !known && !strings.Contains(err.Error(), "it is not there") {
			t.Fatalf("got %T: %v", err, err)
		}
	})
}
