package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost/plugins/internal/guesttest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// cases are command lines over planets.csv, each with a golden file.
var cases = []struct {
	golden string
	args   []string
}{
	{"testdata/planets.table", nil},
	{"testdata/planets.json", []string{"-json"}},
}

// golden compares with a golden file, or writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(guesttest.Read(t, name)), got); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
}

func TestCSVStats(t *testing.T) {
	t.Parallel()
	for _, c := range cases {
		var out, errs bytes.Buffer
		if code := run(c.args, bytes.NewReader(guesttest.Read(t, "planets.csv")), &out, &errs); code != 0 || errs.Len() > 0 {
			t.Errorf("%v: code %d, %s", c.args, code, &errs)
		}
		golden(t, c.golden, out.String())
	}
}

// TestGuest: the command does the same in wasm.
func TestGuest(t *testing.T) {
	t.Parallel()
	module := guesttest.BuildCommand(t, ".")
	for _, c := range cases {
		run := guesttest.Command{Args: c.args, Input: guesttest.Read(t, "planets.csv")}
		run.Run(t, module)
		if run.Code != 0 || run.Errors.Len() > 0 {
			t.Errorf("%v: code %d, %s", c.args, run.Code, &run.Errors)
		}
		golden(t, c.golden, run.Output.String())
	}
	run := guesttest.Command{Input: []byte("a,b\n1\n")}
	run.Run(t, module)
	if got := run.Errors.String(); run.Code != 1 || got != "csvstats: record on line 2: wrong number of fields\n" {
		t.Errorf("code %d, %q", run.Code, got)
	}
}

func TestColumns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, input, want string // as LEAST MOST MEAN of the first column, KIND before it
		args              []string
	}{
		{name: "numbers go by value", input: "n\n9\n10\n-1.50\n", want: "number -1.50 10 5.83333"},
		{name: "one text makes all text", input: "n\n9\n10\nx\n", want: "text 10 x"},
		{name: "what is no finite number is text", input: "n\n1\nNaN\ninf\n", want: "text 1 inf"},
		{name: "large numbers", input: "n\n1e308\n1e308\n", want: "number 1e308 1e308 1e+308"},
		{name: "nothing", input: "n,m\n,1\n  ,2\n", want: "empty"},
		{name: "no records", input: "n\n", want: "empty"},
		{name: "another separator", input: "n;m\n1;2\n", want: "number 1 1 1", args: []string{"-d", ";"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			if code := run(c.args, strings.NewReader(c.input), &out, &errs); code != 0 {
				t.Fatalf("code %d, %s", code, &errs)
			}
			fields := strings.Fields(strings.Split(out.String(), "\n")[1])
			got := strings.Join(append(fields[1:2], fields[4:]...), " ")
			if got != c.want {
				t.Errorf("%q instead of %q in\n%s", got, c.want, &out)
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, input, says string
		args              []string
		code              int
	}{
		{name: "no input", says: "csvstats: the input is empty", code: 1},
		{name: "no CSV", input: "a\n\"", says: "csvstats: parse error on line 2", code: 1},
		{name: "wrong flag", args: []string{"-x"}, says: "flag provided but not defined", code: 2},
		{name: "wrong separator", args: []string{"-d", "ab"}, says: "not one character", code: 2},
		{name: "separator that can't be one", args: []string{"-d", "\n"}, input: "a", says: "csvstats: csv: invalid field or comment delimiter", code: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			if code := run(c.args, strings.NewReader(c.input), &out, &errs); code != c.code || !strings.Contains(errs.String(), c.says) || out.Len() > 0 {
				t.Errorf("code %d, %q, wrote %q", code, &errs, &out)
			}
		})
	}
}

func FuzzSummarise(f *testing.F) {
	f.Add("a,b\n1,x\n,\n", "-json")
	f.Add("\"a\nb\"\n-0\n1e999\n", "")
	f.Fuzz(func(t *testing.T, input, flag string) {
		args := []string{"-json"}
		if flag != "-json" {
			args = nil
		}
		var out, errs bytes.Buffer
		code := run(args, strings.NewReader(input), &out, &errs)
		if (code == 0) != (errs.Len() == 0) || code > 1 {
			t.Errorf("code %d, %s", code, &errs)
		}
		if code == 0 && args != nil && !json.Valid(out.Bytes()) {
			t.Errorf("not JSON: %s", &out)
		}
	})
}
