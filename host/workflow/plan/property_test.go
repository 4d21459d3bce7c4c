package plan

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
)

// sound draws a workflow without faults, its steps in any order.
func sound(t *rapid.T) jobhost.Workflow {
	n := rapid.IntRange(1, 12).Draw(t, "steps")
	steps := make([]jobhost.Step, n)
	for i := range steps {
		steps[i] = jobhost.Step{Name: step(i), Worker: "parser"}
		for j := range i {
			if rapid.IntRange(0, 2).Draw(t, "edge") == 0 {
				steps[i].Needs = append(steps[i].Needs, step(j))
			}
		}
		if len(steps[i].Needs) > 0 && rapid.Bool().Draw(t, "when") {
			steps[i].When = "steps." + steps[i].Needs[0] + `.status == "completed"`
		}
	}
	return jobhost.Workflow{Name: "drawn", Steps: rapid.Permutation(steps).Draw(t, "order")}
}

func TestOrderRespectsNeeds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := sound(t)
		p, err := Compile(w, Env{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Steps {
			s := &p.Steps[i]
			if s.Index != i || s.Name != w.Steps[s.Source].Name || len(s.Needs) != len(s.Step.Needs) {
				t.Fatalf("step %d is %+v", i, s)
			}
			reach := map[int32]bool{}
			for _, need := range s.Needs {
				if int(need) >= i || !slices.Contains(p.Steps[need].Next, int32(i)) || p.Steps[need].Level >= s.Level {
					t.Fatalf("step %s comes before %s", s.Name, p.Steps[need].Name)
				}
				reach[need] = true
				for _, above := range p.Ancestors(int(need)) {
					reach[above] = true
				}
			}
			if above := p.Ancestors(i); len(above) != len(reach) || slices.ContainsFunc(above, func(a int32) bool { return !reach[a] }) {
				t.Fatalf("step %s comes after %v", s.Name, above)
			}
		}
	})
}

func TestEveryPlantedFaultIsFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := sound(t)
		w.Steps = append(slices.Clone(w.Steps), jobhost.Step{Name: "p", Worker: "parser"}, jobhost.Step{Name: "q", Worker: "parser", Needs: []string{"p"}})
		at := func(name string) *jobhost.Step {
			return &w.Steps[slices.IndexFunc(w.Steps, func(s jobhost.Step) bool { return s.Name == name })]
		}
		var want []string
		plant := func(name, fault string, do func()) {
			if rapid.Bool().Draw(t, name) {
				do()
				want = append(want, fault)
			}
		}
		first := &w.Steps[0]
		plant("circle", "steps go in a circle: p → q → p", func() { at("p").Needs = []string{"q"} })
		plant("self", "needs itself", func() { first.Needs = append(slices.Clone(first.Needs), first.Name) })
		plant("missing", `there is no step "nowhere"`, func() { at("q").Needs = append(at("q").Needs, "nowhere") })
		plant("kind", "the step has worker and signal", func() { first.Signal = "s" })
		plant("twice", `"p" is the name of`, func() { w.Steps = append(w.Steps, jobhost.Step{Name: "p", Worker: "parser"}) })
		plant("worker", `there is no worker "ghost"`, func() { w.Steps = append(w.Steps, jobhost.Step{Name: "g", Worker: "ghost"}) })
		plant("when", "of type int, not bool", func() { at("q").When = "1" })
		plant("fallback", "there is no step and no worker", func() { at("q").Fallback = "nobody" })
		_, err := Compile(w, Env{Workers: map[string]Worker{"parser": {}}})
		text := ""
		if err != nil {
			text = lines(err)
		}
		for _, fault := range want {
			if !strings.Contains(text, fault) {
				t.Fatalf("%q is not in\n%s", fault, text)
			}
		}
		if found := strings.Count(text, "\n"); found != len(want) {
			t.Fatalf("%d faults were planted, and %d found:\n%s", len(want), found, text)
		}
	})
}

func TestHashIsOfTheMeaning(t *testing.T) {
	t.Parallel()
	hash := func(text string) string {
		w, err := Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		h, err := Hash(&w)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	one := hash(`{"name":"a","labels":{"x":"1","y":"2"},"steps":[{"name":"s","worker":"w","input_schema":{"type":"string","minLength":1}}]}`)
	same := hash(`{"steps":[{"worker":"w","name":"s","input_schema":{ "minLength":1, "type":"string"}}],"labels":{"y":"2","x":"1"},"name":"a"}`)
	other := hash(`{"name":"a","labels":{"x":"1","y":"2"},"steps":[{"name":"s","worker":"w","input_schema":{"type":"string","minLength":2}}]}`)
	if one != same || one == other {
		t.Errorf("got %s, %s and %s", one, same, other)
	}
}

// FuzzDecode checks for any bytes that they are refused with errors fit to
// print, or are a workflow that can be written and read again.
func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	env := setup(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		begin := time.Now()
		defer func() {
			if took := time.Since(begin); took > 2*time.Second {
				t.Fatalf("it took %v", took)
			}
		}()
		w, err := Decode(text)
		if err == nil {
			var p *Plan
			if p, err = Compile(w, env); err == nil {
				again, err := json.Marshal(&p.Workflow)
				if err != nil {
					t.Fatal(err)
				}
				w, err := Decode(again)
				if err != nil {
					t.Fatalf("%v\n%s", err, again)
				}
				if h, err := Hash(&w); err != nil || h != p.Hash {
					t.Fatalf("another hash: %v", err)
				}
				return
			}
		}
		for _, e := range leaves(err) {
			if e.Code == "no code" || len(e.Message) > 4000 || strings.ContainsFunc(e.Message+e.Hint+e.Field, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Fatalf("not fit to print: %q %q %q", e.Field, e.Message, e.Hint)
			}
		}
	})
}
