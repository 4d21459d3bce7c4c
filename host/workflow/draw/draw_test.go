package draw_test

import (
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/draw"
	"github.com/jobhost/jobhost/host/workflow/plan"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func compile(t testing.TB, w jobhost.Workflow) *plan.Plan {
	t.Helper()
	p, err := plan.Compile(w, plan.Env{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestGolden draws each testdata/NAME.json in all formats; a step whose
// description begins with a status is drawn with it. A new case is a new file.
func TestGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			w, err := plan.Decode(text)
			if err != nil {
				t.Fatal(err)
			}
			p := compile(t, w)
			var o draw.Options
			if strings.Contains(file, "status") {
				o.Status = func(name string) jobhost.StepStatus {
					s, _ := p.Step(name)
					return jobhost.StepStatus(s.Description)
				}
			}
			base := strings.TrimSuffix(file, ".json")
			compareGolden(t, base+".txt", draw.ASCII(p, o))
			compareGolden(t, base+".mmd", draw.Mermaid(p, o))
			compareGolden(t, base+".dot", draw.DOT(p, o))
			svg := draw.SVG(p, o)
			checkXML(t, svg)
			compareGolden(t, base+".svg", svg)
		})
	}
}

func checkXML(t *testing.T, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatalf("it is not XML: %v", err)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "script" {
			t.Fatal("it has a script")
		}
	}
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

func TestLargePlansAreDrawn(t *testing.T) {
	t.Parallel()
	name := func(i int) string { return fmt.Sprintf("s%d", i) }
	wide := jobhost.Workflow{Name: "wide", Steps: []jobhost.Step{{Name: "end", Worker: "w"}}}
	deep := jobhost.Workflow{Name: "deep"}
	for i := range jobhost.MaxSteps - 1 {
		wide.Steps = append(wide.Steps, jobhost.Step{Name: name(i), Worker: "w"})
		wide.Steps[0].Needs = append(wide.Steps[0].Needs, name(i))
		s := jobhost.Step{Name: name(i), Worker: "w"}
		if i > 0 {
			s.Needs = []string{name(i - 1)}
		}
		deep.Steps = append(deep.Steps, s)
	}
	for _, w := range []jobhost.Workflow{wide, deep} {
		p := compile(t, w)
		for format, text := range map[string]string{
			"ASCII": draw.ASCII(p, draw.Options{}), "Mermaid": draw.Mermaid(p, draw.Options{}),
			"DOT": draw.DOT(p, draw.Options{}), "SVG": draw.SVG(p, draw.Options{}),
		} {
			if !strings.Contains(text, name(9_000)) || len(text) > 8<<20 {
				t.Errorf("%s as %s has %d bytes", w.Name, format, len(text))
			}
		}
		for line := range strings.Lines(draw.ASCII(p, draw.Options{})) {
			if len(line) > 200 {
				t.Fatalf("%s has a line of %d bytes", w.Name, len(line))
			}
		}
	}
}
