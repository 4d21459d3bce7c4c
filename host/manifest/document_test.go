package manifest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost/host/manifest"
)

func TestDocument(t *testing.T) {
	t.Parallel()
	d, root := manifest.ReadDocument("case.toml", []byte(`
text = "x"
whole = 7
number = 1
flag = true
wait = "2s"
texts = ["a", "b"]
config = { a = "1" }

[[list]]
name = "first"
[[list]]
name = "second"
`))
	number, _ := root.Number("number")
	flag, given := root.Flag("flag")
	var names []string
	for _, one := range root.Tables("list") {
		names = append(names, one.Text("name"))
		one.Close()
	}
	got := []any{
		root.Text("text"), root.Whole("whole", 0, 9, 1), root.Whole("missing", 0, 9, 1), number, flag, given,
		root.Duration("wait", time.Minute), root.Texts("texts"), root.TextTable("config"), names, root.OneOf("text", "x", "y"), root.Has("none"),
	}
	root.Close()
	want := []any{
		"x", int64(7), int64(1), 1.0, true, true, 2 * time.Second, []string{"a", "b"}, map[string]string{"a": "1"}, []string{"first", "second"}, "x", false,
	}
	if diff := cmp.Diff(want, got); diff != "" || d.Err() != nil {
		t.Errorf("%v\n%s", d.Err(), diff)
	}
}

func TestDocumentFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"another type", "text = 7", "a:1:8: text: a whole number is not possible here; put it in quotes"},
		{"no list", "list = 7", "a:1:8: list: a whole number is not possible here; write a list of tables, such as [{ … }]"},
		{"out of range", "\nwhole = 10", "a:2:9: whole: 10 is not between 0 and 9"},
		{"in a list", "[[list]]\n[[list]]\nnama = 1", "a:3:1: list[2]: nama is not a setting; did you mean name?"},
		{"no TOML", "text = ", "a:1:7: unexpected EOF; expected value"},
		{"not UTF-8", "text = \"\xff\"", "a:1:9: the file is not valid UTF-8; save it as UTF-8"},
		{"too deep", "text = " + strings.Repeat("[", 100), "a:1:25: values are nested deeper than 16"},
		{"large", strings.Repeat("#", 2<<20), "a: the file is larger than 1MiB"},
		{"nothing", "# nothing", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d, root := manifest.ReadDocument("a", []byte(tt.text))
			root.Text("text")
			root.Whole("whole", 0, 9, 0)
			for _, one := range root.Tables("list") {
				one.Text("name")
				one.Close()
			}
			root.Close()
			got := ""
			if err := d.Err(); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestLoadForTests: neither secrets nor plugins need be there, and no secret is real.
func TestLoadForTests(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("JOBHOST_TEST_REAL", "real")
	path := filepath.Join(dir, "manifest.toml")
	text := `
[worker.a]
plugin = "none.wasm"
[worker.a.secrets]
token = { env = "JOBHOST_TEST_REAL" }
other = { file = "no/such/file" }
[webhook]
allow = ["https://a.example"]
secrets = [{ env = "JOBHOST_TEST_NONE" }]
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := manifest.LoadForTests(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, secret := range m.Workers[0].Secrets {
		if secret.Reveal() != manifest.FakeSecret {
			t.Errorf("%s is %q", name, secret.Reveal())
		}
	}
	if _, err := m.ReadPlugin(&m.Workers[0]); err == nil {
		t.Error("a plugin that isn't there was read")
	}
}
