package expr

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const inputSchema = `{"type":"object","properties":{
	"name":{"type":"string"},"size":{"type":"integer"},"score":{"type":"number"},"ok":{"type":"boolean"},
	"tags":{"type":"array","items":{"type":"string"}},
	"rows":{"type":"array","items":{"type":"object","properties":{"price":{"type":"number"},"sku":{"type":"string"}}}},
	"next":{"$ref":"#"},"free":{}}}`

func setup(t testing.TB) *Env {
	t.Helper()
	e, err := New(json.RawMessage(inputSchema), []Step{
		{Name: "fetch", Output: json.RawMessage(`{"type":"object","properties":{"status":{"type":"integer"},"body":{"type":"string"}},"additionalProperties":false}`)},
		{Name: "load-data"},
		{Name: "parse", Output: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`), List: true},
		{Name: "later"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func above(step string) bool { return step != "later" && step != "me" }

func data() *Data {
	steps := map[string]StepData{
		"fetch":     {Status: jobhost.StepCompleted, Output: []byte(`{"status":200,"body":"héllo"}`)},
		"load-data": {Status: jobhost.StepFailed, Failure: &jobhost.Failure{Code: "trap", Message: "it broke", Attempt: 2}},
		"parse":     {Status: jobhost.StepCompleted, Output: []byte(`[{"n":9007199254740993},{"n":2}]`)},
	}
	return &Data{
		Input:  []byte(`{"name":"x","size":3,"score":0.5,"ok":true,"tags":["b","a"],"rows":[{"price":2,"sku":"s"},{"price":1.5,"sku":"t"}],"free":{"a":[1,{"b":null}]}}`),
		Output: []byte(`{"done":true}`),
		Steps: func(name string) (StepData, error) {
			s, ok := steps[name]
			if !ok {
				return s, errors.New("it is not there")
			}
			return s, nil
		},
		Workflow: WorkflowData{ID: "wf-1", Name: "w", Labels: map[string]string{"team": "a"}, Started: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)},
	}
}

// TestGolden compiles each line of testdata/KIND.txt and runs it. Lines of
// KIND.golden are the expression, what it reads and the value or the faults.
func TestGolden(t *testing.T) {
	t.Parallel()
	places := map[string]Place{
		"when": {Kind: When, Step: "me", Above: above}, "input": {Kind: Input, Step: "me", Above: above},
		"each": {Kind: Input, Step: "me", Above: above, Item: true}, "fan_out": {Kind: FanOut, Step: "me", Above: above},
		"terminate": {Kind: Terminate, Step: "fetch", Above: above}, "output": {Kind: Output},
	}
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			env := setup(t)
			for line := range strings.Lines(string(lines)) {
				if line = strings.TrimSpace(line); line != "" {
					got.WriteString(line + "\n    " + strings.ReplaceAll(answer(t, env, line, place), "\n", "\n    ") + "\n")
				}
			}
			compareGolden(t, filepath.Join("testdata", name+".golden"), got.String())
		})
	}
}

func answer(t *testing.T, env *Env, source string, place Place) string {
	t.Helper()
	p, err := env.Compile(source, place)
	if err != nil {
		return "✗ " + strings.ReplaceAll(faults(err), "\n", "\n✗ ")
	}
	d := data()
	d.SetItem(1, []byte(`{"id":7}`))
	var value string
	switch place.Kind {
	case When, Terminate:
		var b bool
		b, err = p.Bool(t.Context(), d)
		value = map[bool]string{true: "true", false: "false"}[b]
	case FanOut:
		var list []json.RawMessage
		list, err = p.List(t.Context(), d)
		for _, element := range list {
			value += string(element) + " "
		}
	default:
		var j json.RawMessage
		j, err = p.JSON(t.Context(), d)
		value = string(j)
	}
	if err != nil {
		value = "run: " + faults(err)
	}
	if len(p.Steps()) > 0 {
		value += "  reads " + strings.Join(p.Steps(), " ")
	}
	if pass := p.Passes(); pass.Root != "" {
		value += "  passes " + strings.TrimSpace(pass.Root+" "+pass.Step)
	}
	return value
}

func faults(err error) string {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var lines []string
		for _, e := range joined.Unwrap() {
			lines = append(lines, faults(e))
		}
		return strings.Join(lines, "\n")
	}
	if hint := jobhost.HintOf(err); hint != "" {
		return err.Error() + "; " + hint
	}
	return err.Error()
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

func compile(t testing.TB, source string, place Place) *Program {
	t.Helper()
	p, err := setup(t).Compile(source, place)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestNumbersAreExact(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, input, want string }{
		{"largest", "9223372036854775807", "9223372036854775807"},
		{"smallest", "-9223372036854775808", "-9223372036854775808"},
		{"beyond doubles", "9007199254740993", "9007199254740993"},
		{"whole with a point", "1.0", "1"},
		{"whole with an exponent", "1e3", "1000"},
		{"minus zero", "-0", "0"},
		{"fraction", "0.1", "0.1"},
		{"too large for 64 bits", "18446744073709551616", "18446744073709552000"},
		{"large", "1e300", "1e+300"},
		{"text", `"\u00e9\u2028<"`, "\"é\u2028<\""},
		{"sorted", `{"b":1, "a":[ ]}`, `{"a":[],"b":1}`},
		{"no JSON", "plain text", `"plain text"`},
		{"bytes", "\xff\x00", `"/wA="`},
		{"nothing", "", `""`},
	}
	p := compile(t, "[input][0]", Place{Kind: Output})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := p.JSON(t.Context(), &Data{Input: []byte(tt.input)})
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v, want %s", got, err, tt.want)
			}
		})
	}
}

func TestRunsAreBounded(t *testing.T) {
	t.Parallel()
	large := []byte(`{"list":[` + strings.Repeat("1,", 9999) + `1],"text":"` + strings.Repeat("x", 5_000) + `"}`)
	tests := []struct{ name, source, want string }{
		{"work", "input.list.all(a, input.list.all(b, a == b))", "took more than"},
		{"value", "input.list.map(a, input)", "longer than"},
		{"search", "input.list.all(a, !(2 in input.list))", "took more than"},
		{"pattern", "input.list.all(a, !input.text.matches('^(a|b)*(x|y)+z$'))", "took more than"},
		{"errors", "input.list.all(a, input.list.all(b, 1 / 0 == 1))", "took more than"},
		{"memory", "input.list.map(a, input.text + input.text)", "took more than"},
		{"depth", strings.Repeat("[", 40) + "input" + strings.Repeat("]", 40), ""},
		{"division", "input.list.map(a, 1 / (a - 1))", "division by zero"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			env, err := New(nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			p, err := env.Compile(tt.source, Place{Kind: Output})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			_, err = p.JSON(ctx, &Data{Input: large})
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestRunStopsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("the workflow was cancelled")
	p := compile(t, "input.tags.all(a, steps.fetch.status == a)", Place{Kind: When})
	d := data()
	d.Input = []byte(`{"tags":[` + strings.Repeat("\"completed\",", 1000) + `1]}`)
	inner := d.Steps
	d.Steps = func(name string) (StepData, error) {
		cancel(reason) // while it runs
		return inner(name)
	}
	if _, err := p.Bool(ctx, d); !errors.Is(err, reason) {
		t.Errorf("got %v", err)
	}
	if _, err := p.Bool(ctx, data()); !errors.Is(err, reason) {
		t.Errorf("got %v", err)
	}
}

func TestTooLargeDataIsRefused(t *testing.T) {
	t.Parallel()
	p := compile(t, "size(input) > 1", Place{Kind: When})
	_, err := p.Bool(t.Context(), &Data{Input: make([]byte, jobhost.MaxStepData+1)})
	if jobhost.CodeOf(err) != jobhost.CodeTooLarge {
		t.Errorf("got %v", err)
	}
}

func TestNothingElseIsRead(t *testing.T) {
	t.Parallel()
	p := compile(t, `steps.fetch.output.status == 200 || steps["load-data"].output`, Place{Kind: When})
	d := data()
	d.Input, d.Output = make([]byte, 1<<20), make([]byte, 1<<20)
	inner := d.Steps
	d.Steps = func(name string) (StepData, error) {
		if name != "fetch" && name != "load-data" {
			t.Errorf("step %s was read", name)
		}
		return inner(name)
	}
	if ok, err := p.Bool(t.Context(), d); !ok || err != nil {
		t.Errorf("got %v, %v", ok, err)
	}
}

func TestPayloadIsTextAsItIs(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"input.name": "x", `b"\xff\x00"`: "\xff\x00", "input.size": "3 JSON", "{}": "{} JSON", "null": "null JSON",
	} {
		payload, asJSON, err := compile(t, source, Place{Kind: Input}).Payload(t.Context(), data())
		if asJSON {
			payload = append(payload, " JSON"...)
		}
		if string(payload) != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", source, payload, err, want)
		}
	}
}

func TestItemsShareDecodedData(t *testing.T) {
	t.Parallel()
	p := compile(t, "item.n + size(steps.fetch.output.body) + index", Place{Kind: Input, Item: true})
	d := data()
	calls := 0
	inner := d.Steps
	d.Steps = func(name string) (StepData, error) { calls++; return inner(name) }
	for i, want := range []string{"5", "7", "9"} {
		d.SetItem(i, []byte(`{"n":`+string(rune('0'+i))+`}`))
		if got, err := p.JSON(t.Context(), d); string(got) != want || err != nil {
			t.Errorf("element %d: got %s, %v, want %s", i, got, err, want)
		}
	}
	if calls != 1 {
		t.Errorf("the step was read %d times", calls)
	}
}

func TestWhatIsPassedOnStaysAsItIs(t *testing.T) {
	t.Parallel()
	large := `{ "n": 1.0, "x": "` + strings.Repeat("x", jobhost.MaxStepData) + `" }`
	list := "[" + strings.Repeat(large+", ", 30) + "2.50]"
	d := &Data{Input: []byte(list)}
	env, err := New(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	compile := func(t *testing.T, source string, place Place) *Program {
		t.Helper()
		p, err := env.Compile(source, place)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	elements, err := compile(t, "input.free", Place{Kind: FanOut}).List(t.Context(), d)
	if jobhost.CodeOf(err) != jobhost.CodeTooLarge {
		t.Errorf("a part of what is too large: got %d elements, %v", len(elements), err)
	}
	elements, err = compile(t, "input", Place{Kind: FanOut}).List(t.Context(), d)
	if err != nil || len(elements) != 31 || string(elements[0]) != large || string(elements[30]) != "2.50" {
		t.Errorf("got %d elements, %v", len(elements), err)
	}
	value, err := compile(t, "input", Place{Kind: Output}).JSON(t.Context(), d)
	if err != nil || string(value) != list {
		t.Errorf("got %d bytes, %v", len(value), err)
	}
	d = &Data{Input: []byte("[" + strings.Repeat("1,", jobhost.MaxFanOut) + "1]")}
	if _, err = compile(t, "input", Place{Kind: FanOut}).List(t.Context(), d); jobhost.CodeOf(err) != jobhost.CodeTooLarge {
		t.Errorf("too many: got %v", err)
	}
	for given, want := range map[string]string{"plain": "plain", ` "a\u0062" `: "ab", "\xff": "\xff", "[1, 2]": "[1, 2] JSON", "": ""} {
		payload, asJSON, err := compile(t, "input", Place{Kind: Input}).Payload(t.Context(), &Data{Input: []byte(given)})
		if asJSON {
			payload = append(payload, " JSON"...)
		}
		if err != nil || string(payload) != want {
			t.Errorf("%q: got %q, %v", given, payload, err)
		}
	}
}
