package examples_test

import (
	"encoding/csv"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost/plugins/internal/guesttest"
	"github.com/jobhost/jobhost/plugins/sdk/sdktest"
)

func TestCSVJSON(t *testing.T) {
	t.Parallel()
	module := builtOrSkipped(t, "csvjson", "../sdk/assemblyscript")
	planets := string(guesttest.Read(t, "csvstats/planets.csv"))
	checkRecords(t, planets, sdktest.Call(t, module, "", planets))

	// More than a mailbox holds, and than is written at once.
	name, records, _ := strings.Cut(planets, "\n")
	large := name + "\n" + strings.Repeat(records, 1000)
	checkRecords(t, large, sdktest.Call(t, module, "", large))

	g := guesttest.Start(t, module)
	for _, c := range []struct {
		name, input string
		config      map[string]string
		want        string
	}{
		{"empty", "", nil, ""},
		{"names alone", "a,b\n", nil, ""},
		{"quotes", "\ufeffa,\"b \"\"c\"\"\"\r\n\"1\n2\",\"x,y\"\r\n", nil, `{"a":"1\u000a2","b \"c\"":"x,y"}` + "\n"},
		{"empty fields and lines", "a,b\n\n,\n\n1,", nil, `{"a":null,"b":null}` + "\n" + `{"a":1,"b":null}` + "\n"},
		{"numbers", "n\n0\n-1.50\n007\n1.\n.5\n-\n1e5\n", nil, `{"n":0}
{"n":-1.50}
{"n":"007"}
{"n":"1."}
{"n":".5"}
{"n":"-"}
{"n":"1e5"}
`},
		{"texts", "n\n1\n", map[string]string{"config.types": "text"}, `{"n":"1"}` + "\n"},
		{"semicolons", "a;b\n1,5;2\n", map[string]string{"config.separator": ";"}, `{"a":"1,5","b":2}` + "\n"},
		{"tabs", "a\tb\n1\t2\n", map[string]string{"config.separator": "tab"}, `{"a":1,"b":2}` + "\n"},
		{"too few", "a,b\n\"1\n\",2\n3\n", nil, `{"message":"line 4: there are 1 fields for 2 names","code":"bad_csv","category":"validation","context":{"line":4}}`},
		{"no end", "a\n\"1\n", nil, `{"message":"line 2: the quotes of a field don't end","code":"bad_csv","category":"validation","context":{"line":2}}`},
		{"behind", "a\n\"1\"x\n", nil, `{"message":"line 2: there is something behind the quotes of a field","code":"bad_csv","category":"validation","context":{"line":2}}`},
	} {
		g.Attempt = &guesttest.Attempt{Input: []byte(c.input), Info: c.config}
		if err := g.Call("jh_run"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, string(g.Attempt.Output)+g.Attempt.Failure); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// checkRecords compares with what encoding/csv reads.
func checkRecords(t *testing.T, input, output string) {
	t.Helper()
	records, err := csv.NewReader(strings.NewReader(input)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(strings.Lines(output))
	if len(lines) != len(records)-1 {
		t.Fatalf("%d lines of %d records", len(lines), len(records)-1)
	}
	for i, line := range lines {
		var got map[string]any
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&got); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		want := map[string]any{}
		for j, name := range records[0] {
			want[name] = records[i+1][j]
		}
		for name, value := range maps.All(got) {
			if n, ok := value.(json.Number); ok {
				got[name] = n.String()
			}
			if value == nil {
				got[name] = ""
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s: %s", line, diff)
		}
	}
}
