package manifest

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/jobhost/jobhost"
)

var update = flag.Bool("update", false, "rewrite the golden files and the tables of docs/manifest.md")

// setup makes a folder with files that manifests can name, and the
// options of a manifest in it:
//
//	plugins/a.wasm plugins/b.wasm   files
//	plugins/inside.wasm             a link to a.wasm
//	plugins/outside.wasm            a link to a file above the folder
//	plugins/empty.wasm              an empty file
//	plugins/pipe.wasm               a named pipe that nobody writes to
//	secrets/token                   "from a file\n"
//	secrets/blank                   "\n"
//	secrets/hook                    a key of webhooks
//	flows/*.json schemas/*.json     those of testdata/files
//
// API_KEY is "from the environment", HOOK_KEY a key of webhooks, EMPTY is set and empty, OTHER is not set.
func setup(t testing.TB) options {
	t.Helper()
	top := t.TempDir()
	dir := filepath.Join(top, "project")
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("plugins/a.wasm", "\x00asm a")
	write("plugins/b.wasm", "\x00asm b")
	write("plugins/empty.wasm", "")
	write("secrets/token", "from a file\n")
	write("secrets/blank", "\n")
	write("secrets/seal", strings.Repeat("0f", 32)+"\n")
	write("secrets/hook", "whsec_"+strings.Repeat("b", 32)+"\n")
	write("../elsewhere.wasm", "\x00asm elsewhere")
	if err := os.CopyFS(dir, os.DirFS("testdata/files")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(
		os.Symlink("a.wasm", filepath.Join(dir, "plugins/inside.wasm")),
		os.Symlink("../../elsewhere.wasm", filepath.Join(dir, "plugins/outside.wasm")),
		syscall.Mkfifo(filepath.Join(dir, "plugins/pipe.wasm"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"API_KEY": "from the environment", "EMPTY": "", "SEAL_OLD": strings.Repeat("f0", 32), "HOOK_KEY": "whsec_" + strings.Repeat("a", 32),
	}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	return options{dir: dir, lookup: lookup, cpus: 4}
}

// TestGolden parses each testdata/NAME.toml, which may say $TOP for the folder
// above setup's, and compares what it gives with NAME.golden: the faults, or
// the warnings and the manifest with all defaults. Those that minimal.golden has
// are left out of the others, so that a new setting changes few files. A new case is
// a new file; -update writes the answers.
func TestGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	minimal := shownMinimal(t)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".toml")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := setup(t)
			top := filepath.Dir(opts.dir)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text = bytes.ReplaceAll(text, []byte("$TOP"), []byte(top))
			var got string
			if m, err := parse("manifest.toml", text, opts); err != nil {
				got = err.Error() + "\n"
			} else {
				got = string(m.Show())
				if name != "minimal" {
					got = withoutDefaults(got, minimal)
				}
				if len(m.Warnings) > 0 {
					got = m.Warnings.Error() + "\n\n" + got
				}
				roundTrip(t, m, opts)
			}
			compareGolden(t, strings.TrimSuffix(file, ".toml")+".golden", strings.ReplaceAll(got, top, "$TOP"))
		})
	}
}

// shownMinimal is what a manifest shows that says nothing but what it must.
func shownMinimal(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/minimal.toml")
	if err != nil {
		t.Fatal(err)
	}
	m, err := parse("manifest.toml", text, setup(t))
	if err != nil {
		t.Fatal(err)
	}
	return string(m.Show())
}

// withoutDefaults leaves out the lines of shown that minimal has in the same section. All
// workers count as one.
func withoutDefaults(shown, minimal string) string {
	defaults := map[string]bool{}
	eachSetting(minimal, func(at, _ string) { defaults[at] = true })
	var b strings.Builder
	eachSetting(shown, func(at, line string) {
		if line == "" || strings.HasPrefix(line, "[") || !defaults[at] {
			b.WriteString(line + "\n")
		}
	})
	return b.String()
}

var workerSection = regexp.MustCompile(`^\[worker\.(?:"[^"]*"|[^.\]]*)`)

// eachSetting calls f with each line, and with it together with its section.
func eachSetting(shown string, f func(at, line string)) {
	section := ""
	for line := range strings.Lines(shown) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "[") {
			section = workerSection.ReplaceAllString(line, "[worker.*")
		}
		f(section+line, line)
	}
}

// roundTrip checks that what Show writes is the same manifest.
func roundTrip(t *testing.T, m *Manifest, opts options) {
	t.Helper()
	again, err := parse("shown.toml", m.Show(), opts)
	if err != nil {
		t.Fatalf("parse what was shown: %v\n%s", err, m.Show())
	}
	first := *m
	first.Warnings, again.Warnings = nil, nil
	if diff := cmp.Diff(&first, again, cmp.Comparer(Secret.Equal), cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Fatalf("shown and parsed again it differs (-first +again):\n%s", diff)
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

func TestParseBytes(t *testing.T) {
	t.Parallel()
	// What an editor would not keep in a golden file.
	const worker = "[worker.a]\nplugin = \"plugins/a.wasm\"\n"
	tests := []struct {
		name, text, want string
	}{
		{"empty", "", "manifest.toml: the manifest is empty; it needs at least a worker: [worker.NAME] with a plugin"},
		{"only a comment", "# nothing\n", "manifest.toml: the manifest is empty; it needs at least a worker: [worker.NAME] with a plugin"},
		{"byte order mark", "\xef\xbb\xbf[worker.a]\nplugin = 5", "manifest.toml:2:10: worker.a.plugin: a whole number is not possible here; write text in quotes, such as \"plugins/hello.wasm\""},
		{"latin-1", "[worker.a]\ndescription = \"caf\xe9\"", "manifest.toml:2:19: the manifest is not valid UTF-8; save it as UTF-8"},
		{"NUL in a path", "[worker.a]\nplugin = \"a\\u0000b\"", "manifest.toml:2:10: worker.a.plugin: the path has a NUL byte"},
		{"escape sequence in a key", worker + `"\u001b[31m" = 1`, `manifest.toml:3:1: worker.a: "\x1b[31m" is not a setting`},
		{"escape sequence twice", `"a\u001b[31m" = 1` + "\n" + `"a\u001b[31m" = 1`, `manifest.toml:2:2: key '"a\u001b[31m"' has already been defined`},
		{"huge", "# " + strings.Repeat("x", MaxBytes), "manifest.toml: the manifest is larger than 1MiB"},
		{"long key", "[" + strings.Repeat("a", 100_000) + "]", "manifest.toml:1:2: a key of 100000 bytes is longer than 512"},
		{"many parts", strings.Repeat("a.", 100) + "a = 1", "manifest.toml:1:1: a key of 101 parts has more than 16"},
		{"deep lists", "a = " + strings.Repeat("[", 100_000), "manifest.toml:1:22: values are nested deeper than 16"},
		{"deep tables", "a = " + strings.Repeat("{a=", 100_000), "values are nested deeper than 16"},
		{"long text", worker + "entry = \"" + strings.Repeat("x", 500_000) + `"`, "manifest.toml:3:9: worker.a.entry: text of 500000 bytes is longer than 128"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := parse("manifest.toml", []byte(tt.text), setup(t))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v\nwant %s", err, tt.want)
			}
			if len(err.Error()) > 1000 {
				t.Errorf("the error is %d bytes long", len(err.Error()))
			}
			if code := jobhost.CodeOf(err); code != jobhost.CodeInvalid {
				t.Errorf("got code %q", code)
			}
		})
	}
}

func TestFaultsAreBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "[worker.w%d]\n", i)
	}
	_, err := parse("manifest.toml", []byte(b.String()), setup(t))
	if want := "manifest.toml:1:1: 5000 workers are more than 1000"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	b.Reset()
	b.WriteString("[host]\n")
	for i := range 500 {
		fmt.Fprintf(&b, "unknown%d = 1\n", i)
	}
	_, err = parse("manifest.toml", []byte(b.String()), setup(t))
	faults, ok := errors.AsType[Faults](err)
	if !ok || len(faults) != maxFaults+1 {
		t.Fatalf("got %d faults", len(faults))
	}
	// The fault that there is no worker is one of them.
	if want := "manifest.toml: 401 more faults are not listed"; faults[maxFaults].Error() != want {
		t.Errorf("got %v, want %s", faults[maxFaults], want)
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	opts := setup(t)
	path := filepath.Join(opts.dir, "manifest.toml")
	text := "[worker.a]\nplugin = \"plugins/a.wasm\"\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(opts.dir, "plugins/a.wasm"); m.Workers[0].Path != want {
		t.Errorf("got plugin %s, want %s", m.Workers[0].Path, want)
	}
	if want := filepath.Join(opts.dir, "data", "token"); m.Host.TokenFile != want {
		t.Errorf("got token file %s, want %s", m.Host.TokenFile, want)
	}

	locked := filepath.Join(opts.dir, "locked.toml")
	if err := os.WriteFile(locked, []byte(text), 0o000); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, path, want string
		code             jobhost.Code
	}{
		{"missing", filepath.Join(opts.dir, "no.toml"), "does not exist", jobhost.CodeNotFound},
		{"below a file", filepath.Join(path, "no.toml"), "read manifest", jobhost.CodeInternal},
		{"folder", opts.dir, "is a folder", jobhost.CodeInvalid},
		{"unreadable", locked, "no permission", jobhost.CodeDenied},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.name == "unreadable" && os.Geteuid() == 0 {
				t.Skip("root may read everything")
			}
			_, err := Load(tt.path)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), filepath.Base(tt.path)) {
				t.Errorf("got %v", err)
			}
			if code := jobhost.CodeOf(err); code != tt.code {
				t.Errorf("got code %q, want %q", code, tt.code)
			}
		})
	}
}

func TestReadPlugin(t *testing.T) {
	t.Parallel()
	opts := setup(t)
	pinned := "[worker.a]\nplugin = \"plugins/a.wasm\"\nsha256 = \"" + digest([]byte("\x00asm a")) + "\"\n"
	m, err := parse("manifest.toml", []byte(pinned), opts)
	if err != nil {
		t.Fatal(err)
	}
	w := &m.Workers[0]
	if data, err := m.ReadPlugin(w); err != nil || string(data) != "\x00asm a" {
		t.Fatalf("got %q, %v", data, err)
	}
	if err := os.WriteFile(w.Path, []byte("\x00asm other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := m.ReadPlugin(w); jobhost.CodeOf(err) != jobhost.CodeDenied {
		t.Errorf("a plugin that changed: got %v", err)
	}
	w.SHA256 = ""
	outside := filepath.Join(opts.dir, "plugins/outside.wasm")
	if err := errors.Join(os.Remove(w.Path), os.Symlink("../../elsewhere.wasm", w.Path)); err != nil {
		t.Fatal(err)
	}
	if _, err := m.ReadPlugin(w); jobhost.CodeOf(err) != jobhost.CodeInvalid || !strings.Contains(err.Error(), "link that leads out") {
		t.Errorf("a plugin that became a link: got %v", err)
	}
	w.Path = outside // absolute, but below the folder: the same rule
	if _, err := m.ReadPlugin(w); err == nil {
		t.Error("a link out of the folder was followed")
	}
	w.Path = filepath.Join(filepath.Dir(opts.dir), "elsewhere.wasm")
	if _, err := m.ReadPlugin(w); err != nil {
		t.Errorf("an absolute path elsewhere: %v", err)
	}
}
