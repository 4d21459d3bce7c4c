package plan

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// setup returns a host with a few workers, and the workflows of testdata/others.
func setup(t testing.TB) Env {
	t.Helper()
	env := Env{Workers: map[string]Worker{
		"parser": {}, "loader": {Entries: []string{"run", "csv"}}, "mailer": {},
	}, Workflows: map[string]*jobhost.Workflow{}}
	files, err := filepath.Glob("testdata/others/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		w, err := Decode(text)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		env.Workflows[w.Name] = &w
	}
	return env
}

// TestGolden reads and compiles each testdata/NAME.json and compares what it
// gives with NAME.golden: the faults, or the plan. A new case is a new file;
// -update writes the answers.
func TestGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			w, err := Decode(text)
			var p *Plan
			if err == nil {
				p, err = Compile(w, setup(t))
			}
			if err != nil {
				got = lines(err)
			} else {
				got = show(p)
			}
			compareGolden(t, strings.TrimSuffix(file, ".json")+".golden", got)
		})
	}
}

// TestNesting checks that the longest way down counts, wherever it is found first.
func TestNesting(t *testing.T) {
	t.Parallel()
	named := func(name string, below ...string) *jobhost.Workflow {
		w := &jobhost.Workflow{Name: name}
		for _, b := range below {
			w.Steps = append(w.Steps, jobhost.Step{Name: "to-" + b, Workflow: b})
		}
		return w
	}
	env := Env{Workflows: map[string]*jobhost.Workflow{"a": named("a", "b", "c"), "b": named("b"), "c": named("c", "d"), "d": named("d", "b")}}
	top := *named("top", "b", "a")
	for most, want := range map[int]string{
		4: "steps.to-a.workflow: workflows are nested deeper than 4: top → a → c → d → b\n", 5: "", 0: "",
	} {
		env.MaxNesting = most
		got := ""
		if _, err := Compile(top, env); err != nil {
			got = lines(err)
		}
		if got != want {
			t.Errorf("%d: got %q, want %q", most, got, want)
		}
	}
}

func lines(err error) string {
	var b strings.Builder
	for _, e := range leaves(err) {
		if e.Field != "" {
			b.WriteString(e.Field + ": ")
		}
		b.WriteString(e.Message)
		if e.Hint != "" {
			b.WriteString("; " + e.Hint)
		}
		if e.Code != jobhost.CodeInvalid {
			b.WriteString(" (" + string(e.Code) + ")")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func leaves(err error) []*jobhost.Error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*jobhost.Error
		for _, one := range joined.Unwrap() {
			all = append(all, leaves(one)...)
		}
		return all
	}
	if e, ok := errors.AsType[*jobhost.Error](err); ok {
		return []*jobhost.Error{e}
	}
	return []*jobhost.Error{{Code: "no code", Message: err.Error()}}
}

func show(p *Plan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s, %d levels, last %v, output of %d\n", p.Workflow.Name, p.Hash[:12], p.Levels, p.Last, p.OutputStep)
	for i := range p.Steps {
		s := &p.Steps[i]
		fmt.Fprintf(&b, "%d %s %s level %d needs %v next %v", s.Index, KindOf(s.Step), s.Name, s.Level, s.Needs, s.Next)
		if s.Fallback >= 0 || s.FallbackWorker != "" {
			fmt.Fprintf(&b, " fallback %d%s", s.Fallback, s.FallbackWorker)
		}
		if s.FallbackOf >= 0 {
			fmt.Fprintf(&b, " fallback of %d", s.FallbackOf)
		}
		fmt.Fprintf(&b, " after %v\n", p.Ancestors(i))
	}
	return b.String()
}

func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
