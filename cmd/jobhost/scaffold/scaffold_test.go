package scaffold_test

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/cmd/jobhost/scaffold"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/plugins/sdk"
)

func files(t *testing.T, name string, l *scaffold.Language) map[string]scaffold.File {
	t.Helper()
	list, err := scaffold.Files(name, l)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]scaffold.File{}
	for _, f := range list {
		if _, twice := all[f.Path]; twice || !filepath.IsLocal(f.Path) {
			t.Errorf("%s is there twice, or elsewhere", f.Path)
		}
		all[f.Path] = f
	}
	return all
}

func TestFiles(t *testing.T) {
	t.Parallel()
	for _, l := range scaffold.Languages() {
		t.Run(l.Name, func(t *testing.T) {
			t.Parallel()
			all := files(t, "my.worker", &l)
			for _, name := range []string{"README.md", "manifest.toml", "build.sh", ".gitignore", "cases/greets/case.toml", "cases/nobody/case.toml", l.Source} {
				if len(all[name].Data) == 0 {
					t.Errorf("there is no %s", name)
				}
			}
			if !all["build.sh"].Executable || all["README.md"].Executable {
				t.Error("build.sh can't be run, or README.md can")
			}
			if l.Install != "" && len(all["package.json"].Data) == 0 {
				t.Errorf("%s has nothing to do", l.Install)
			}
			for _, f := range all {
				for _, leftover := range []string{"<no value>", "{{.", "{{-"} {
					if bytes.Contains(f.Data, []byte(leftover)) {
						t.Errorf("%s has %s", f.Path, leftover)
					}
				}
				if path.Ext(f.Path) == ".md" && strings.Contains(f.Path, "/") {
					for _, link := range regexp.MustCompile(`\]\(([^)]*)\)`).FindAllStringSubmatch(string(f.Data), -1) {
						if !strings.HasPrefix(link[1], "https://") && !strings.HasPrefix(link[1], "#") {
							t.Errorf("%s links to %s, which is not there", f.Path, link[1])
						}
					}
				}
				if strings.HasSuffix(f.Path, ".wasm") || path.Ext(f.Path) == ".tmpl" || strings.Contains(f.Path, "testdata") {
					t.Errorf("%s is none of a project's", f.Path)
				}
			}
		})
	}
}

// The manifest is one that dev can load, whatever name the worker has.
func TestManifest(t *testing.T) {
	t.Parallel()
	for _, l := range scaffold.Languages() {
		for _, name := range []string{"greeter", "7.of-9_x"} {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "manifest.toml"), files(t, name, &l)["manifest.toml"].Data, 0o600); err != nil {
				t.Fatal(err)
			}
			m, err := manifest.LoadUnbuilt(filepath.Join(dir, "manifest.toml"))
			if err != nil {
				t.Errorf("%s: %v", l.Name, err)
				continue
			}
			if len(m.Workers) != 1 || m.Workers[0].Name != name || m.Workers[0].Build == "" {
				t.Errorf("%s: the workers are %+v", l.Name, m.Workers)
			}
		}
	}
}

// The docs compare all languages.
func TestDocs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/workers.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range scaffold.Languages() {
		if !strings.Contains(string(text), "\n| `"+l.Name+"` |") || !strings.Contains(string(text), l.Source) {
			t.Errorf("docs/workers.md doesn't know %s", l.Name)
		}
	}
}

func TestBadName(t *testing.T) {
	t.Parallel()
	l, _ := scaffold.Find("go")
	for _, name := range []string{"", "..", "../x", "a/b", "A", "-x", ".x", "a b", strings.Repeat("a", 64)} {
		if _, err := scaffold.Files(name, &l); jobhost.CodeOf(err) != jobhost.CodeInvalid {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, found := scaffold.Find("cobol"); found {
		t.Error("there is COBOL")
	}
	if !slices.Contains(scaffold.Names(), "go") {
		t.Errorf("the names are %q", scaffold.Names())
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	some := []scaffold.File{{Path: "a", Data: []byte("x")}, {Path: "b/run.sh", Data: []byte("#!"), Executable: true}}
	dir := filepath.Join(t.TempDir(), "deep", "project")
	if err := scaffold.Write(dir, some); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "b", "run.sh")); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("%v, %v", info, err)
	}

	err := scaffold.Write(dir, some)
	if jobhost.CodeOf(err) != jobhost.CodeConflict || jobhost.HintOf(err) == "" {
		t.Errorf("into a folder that is not empty: %v", err)
	}
	if err := scaffold.Write(filepath.Join(dir, "a"), some); err == nil {
		t.Error("into a file")
	}
}

// What can't be written to its end leaves nothing behind.
func TestWriteTakesBack(t *testing.T) {
	t.Parallel()
	bad := []scaffold.File{{Path: "a"}, {Path: "a/b"}}
	empty, missing := t.TempDir(), filepath.Join(t.TempDir(), "new")
	for _, dir := range []string{empty, missing} {
		if err := scaffold.Write(dir, bad); err == nil {
			t.Errorf("%s was written", dir)
		}
	}
	if left, err := os.ReadDir(empty); err != nil || len(left) > 0 {
		t.Errorf("there is %v, %v", left, err)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("the folder is there")
	}
}

// TestLicense wants the license of the SDKs in projects to be this project's.
func TestLicense(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile(filepath.Join("..", "..", "..", "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := sdk.Files.ReadFile("LICENSE")
	if err != nil || string(got) != string(want) {
		t.Errorf("plugins/sdk/LICENSE is another one, %v: copy LICENSE", err)
	}
}
