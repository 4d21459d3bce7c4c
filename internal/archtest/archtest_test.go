package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const module = "github.com/jobhost/jobhost"

// TestHouse checks this checkout against the rules.
func TestHouse(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil || !strings.HasPrefix(string(mod), "module "+module+"\n") {
		t.Fatalf("%s is not the root of %s: %v", root, module, err)
	}
	tree, err := Parse(os.DirFS(root), module)
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.files) < 20 {
		t.Fatalf("only %d files were found", len(tree.files))
	}
	for _, v := range tree.Check(House()) {
		t.Error(v)
	}
	for _, long := range tree.Long(House()) {
		t.Logf("look twice: %s", long)
	}
}

// source returns a file that imports packages of the module and has a body.
func source(pkg, body string, imports ...string) *fstest.MapFile {
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n", pkg)
	for _, i := range imports {
		fmt.Fprintf(&b, "import _ %q\n", strings.TrimSuffix(module+"/"+i, "/"))
	}
	b.WriteString(body)
	return &fstest.MapFile{Data: []byte(b.String())}
}

func TestArrows(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, file, target string
		want               string // rule; empty = allowed
	}{
		{"root may use internal", "job.go", "internal/logkey", ""},
		{"root has no machinery", "job.go", "host", "arrows"},
		{"root tests test the root", "job_test.go", "", ""},
		{"root tests no machinery", "job_test.go", "host", "arrows"},
		{"internal knows the vocabulary", "internal/x/x.go", "", ""},
		{"internal is no way around", "internal/x/x.go", "host", "arrows"},
		{"runtime knows itself", "runtime/jobabi/x.go", "runtime/hostcall", ""},
		{"runtime not host", "runtime/jobabi/x.go", "host/metrics", "arrows"},
		{"runtime tests not host", "runtime/jobabi/x_test.go", "host/metrics", "arrows"},
		{"runtime not state", "runtime/x.go", "state", "arrows"},
		{"state not runtime", "state/x.go", "runtime", "arrows"},
		{"state not netproxy", "state/x.go", "netproxy", "arrows"},
		{"netproxy not host", "netproxy/policy/x.go", "host", "arrows"},
		{"a name is not a prefix", "netproxy/policy/x.go", "statement", "arrows"},
		{"host joins", "host/x.go", "state", ""},
		{"host not cmd", "host/x.go", "cmd/jobhost", "arrows"},
		{"host not its drivers", "host/x.go", "host/queue/sqlitequeue", "drivers"},
		{"host tests use drivers", "host/api/x_test.go", "runtime/wasm", ""},
		{"suites are tests", "host/hosttest/x.go", "runtime/wasm", ""},
		{"runtime not its drivers", "runtime/x.go", "runtime/wasm", "drivers"},
		{"a driver knows its parts", "runtime/wasm/x.go", "runtime/wasm/preflight", ""},
		{"parts know each other", "runtime/wasm/a/x.go", "runtime/wasm/b", ""},
		{"parts are the driver's", "runtime/jobabi/x.go", "runtime/wasm/preflight", "drivers"},
		{"a suite is no driver", "host/queue/x_test.go", "host/queue/queuetest", ""},
		{"cmd knows drivers", "cmd/jobhost/drivers.go", "state/sqlitestate", ""},
		{"test knows drivers", "test/x_test.go", "host/queue/sqlitequeue", ""},
		{"client knows the vocabulary", "client/x.go", "", ""},
		{"client not host", "client/x.go", "host", "arrows"},
		{"client knows the forms of the API", "client/x.go", "host/api/wire", ""},
		{"which know the vocabulary only", "host/api/wire/x.go", "host/queue", "arrows"},
		{"client tests host", "client/x_test.go", "host/hosttest", ""},
		{"guests know their SDK", "plugins/examples/a/main.go", "plugins/sdk/go", ""},
		{"guests not the root", "plugins/examples/a/main.go", "", "arrows"},
		{"unknown folder", "elsewhere/x.go", "host", "layers"},
		{"other modules are not judged", "elsewhere/x.go", "-tools/x", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := module + "/" + tc.target
			if strings.HasPrefix(tc.target, "-") {
				path = module + tc.target
			}
			body := fmt.Sprintf("package p\n\nimport _ %q\n", strings.TrimSuffix(path, "/"))
			wantRules(t, fstest.MapFS{tc.file: {Data: []byte(body)}}, tc.file+":3", tc.want)
		})
	}
}

// wantRules checks that a tree breaks one rule at a place, or none.
func wantRules(t *testing.T, files fstest.MapFS, place, rule string) {
	t.Helper()
	tree, err := Parse(files, module)
	if err != nil {
		t.Fatal(err)
	}
	got := tree.Check(House())
	switch {
	case rule == "" && len(got) > 0:
		t.Errorf("unexpected: %v", got)
	case rule != "" && (len(got) != 1 || !strings.HasPrefix(got[0].String(), place+": "+rule+": ")):
		t.Errorf("got %v, want %s at %s", got, rule, place)
	}
}

func TestHabits(t *testing.T) {
	t.Parallel()
	doc := "// Package p starts a goroutine because it must.\n"
	for _, tc := range []struct {
		name, file, text string
		line             int
		want             string
	}{
		{"go outside of the list", "host/x.go", "package p\n\nfunc f() {\n\tgo f()\n}\n", 4, "goroutines"},
		{"go in a closure", "host/x.go", "package p\n\nvar f = func() { go f2() }\n\nfunc f2() {}\n", 3, "goroutines"},
		{"go in a test", "host/x_test.go", "package p\n\nfunc f() { go f() }\n", 0, ""},
		{"go in a guest", "plugins/a/x.go", "package p\n\nfunc f() { go f() }\n", 0, ""},
		{"go in the list", "host/scope/x.go", doc + "package p\n\nfunc f() { go f() }\n", 0, ""},
		{"listed without saying why", "host/scope/x.go", "package p\n\nfunc f() { go f() }\n", 1, "goroutines"},
		{"listed for nothing", "host/scope/x.go", doc + "package p\n", 1, "goroutines"},
		{"init", "host/x.go", "package p\n\nfunc init() {}\n", 3, "init"},
		{"init of a guest", "plugins/a/x.go", "package p\n\nfunc init() {}\n", 0, ""},
		{"method init", "host/x.go", "package p\n\ntype T int\n\nfunc (T) init() {}\n", 0, ""},
		{"print", "host/x.go", "package p\n\nimport \"fmt\"\n\nfunc f() { fmt.Println() }\n", 5, "print"},
		{"print by another name", "host/x.go", "package p\n\nimport out \"fmt\"\n\nvar f = out.Printf\n", 5, "print"},
		{"print of a builtin", "host/x.go", "package p\n\nfunc f() { println() }\n", 3, "print"},
		{"print elsewhere", "host/x.go", "package p\n\nimport \"fmt\"\n\nvar f = fmt.Sprint\n", 0, ""},
		{"print in a command", "cmd/jobhost/x.go", "package p\n\nimport \"fmt\"\n\nfunc f() { fmt.Println() }\n", 0, ""},
		{"print in an example", "host/x_test.go", "package p\n\nimport \"fmt\"\n\nfunc f() { fmt.Println() }\n", 0, ""},
		{"sleep in a test", "host/x_test.go", "package p\n\nimport \"time\"\n\nfunc f() { time.Sleep(1) }\n", 5, "sleep"},
		{"sleep in a suite", "host/queue/queuetest/x.go", "package p\n\nimport \"time\"\n\nfunc f() { time.Sleep(1) }\n", 5, "sleep"},
		{"sleep in a bubble", "host/x_test.go", "package p\n\nimport \"time\"\nimport \"testing/synctest\"\n\nfunc f() { time.Sleep(1); synctest.Wait() }\n", 0, ""},
		{"another's sleep", "host/x_test.go", "package p\n\nimport \"example.com/time2\"\n\nfunc f() { time2.Sleep(1) }\n", 0, ""},
		{"too long", "host/x.go", "package p\n" + strings.Repeat("\n", 500), 1, "length"},
		{"just short enough", "host/x.go", "package p\n" + strings.Repeat("\n", 499), 0, ""},
		{"generated", "host/x.go", "// Code generated by hand. DO NOT EDIT.\n\npackage p\n" + strings.Repeat("\n", 600), 0, ""},
		{"build tags hide nothing", "host/x.go", "//go:build ignore\n\npackage p\n\nfunc init() {}\n", 5, "init"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			wantRules(t, fstest.MapFS{tc.file: {Data: []byte(tc.text)}}, fmt.Sprintf("%s:%d", tc.file, tc.line), tc.want)
		})
	}
}

func TestIgnoredFolders(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"testdata", "vendor", ".git", "_old", "host/testdata"} {
		wantRules(t, fstest.MapFS{dir + "/x.go": {Data: []byte("no Go at all")}}, "", "")
	}
	if _, err := Parse(fstest.MapFS{"host/x.go": {Data: []byte("no Go at all")}}, module); err == nil {
		t.Error("a file that does not parse was accepted")
	}
}

func TestViolationsAreSortedAndLongFilesListed(t *testing.T) {
	t.Parallel()
	tree, err := Parse(fstest.MapFS{
		"state/b.go": source("b", "func init() {}\n", "runtime", "netproxy"),
		"state/a.go": source("a", strings.Repeat("\n", 450), "runtime"),
	}, module)
	if err != nil {
		t.Fatal(err)
	}
	var places []string
	for _, v := range tree.Check(House()) {
		places = append(places, fmt.Sprintf("%s:%d", v.File, v.Line))
	}
	if want := []string{"state/a.go:2", "state/b.go:2", "state/b.go:3", "state/b.go:4"}; !slices.Equal(places, want) {
		t.Errorf("got %v, want %v", places, want)
	}
	if long := tree.Long(House()); !slices.Equal(long, []string{"state/a.go: 452 lines"}) {
		t.Errorf("long files %v", long)
	}
}
