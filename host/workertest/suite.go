package workertest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/runtime"
)

// Suite is a folder of cases, with the common settings in its cases.toml.
type Suite struct {
	Dir   string
	Cases []*Case // by name

	// Worker is the worker in the manifest that the cases are for, Manifest the path
	// of that, and Plugin a module or Extism manifest instead; empty = unspecified.
	// Paths are relative to the working directory.
	Worker, Manifest, Plugin string
	ABI, Entry               string
	// Features are those of [runtime.Features] that Plugin may use.
	Features                []string
	Timeout                 time.Duration
	Config, Secrets, Labels map[string]string
}

// settingsFile has the settings for all cases of a folder, caseFile for one.
const (
	settingsFile = "cases.toml"
	caseFile     = "case.toml"
)

// Open reads the cases of a folder: of the suite, or of a single one in it. All faults
// are reported at once; then there is no suite.
func Open(dir string) (*Suite, error) {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = errors.New("it is not a folder")
	}
	if err != nil {
		return nil, &jobhost.Error{
			Code: jobhost.CodeNotFound, Message: fmt.Sprintf("open cases: %s: %v", dir, reason(err)),
			Hint: "name the folder of the cases; docs/testing-workers.md has an example",
		}
	}
	s := &Suite{Dir: dir}
	f := &finder{suite: s}
	if one := caseIn(dir); one {
		f.settings(filepath.Dir(dir))
		f.folder(dir, filepath.Base(absolute(dir)))
	} else {
		f.settings(dir)
		f.walk()
	}
	if err := errors.Join(f.errs...); err != nil {
		return nil, err
	}
	if len(s.Cases) == 0 {
		return nil, &jobhost.Error{
			Code: jobhost.CodeNotFound, Message: "open cases: " + dir + " has none",
			Hint: "a case is a folder with a file input or case.toml, or two files NAME.in and NAME.out",
		}
	}
	slices.SortFunc(s.Cases, func(a, b *Case) int { return strings.Compare(a.Name, b.Name) })
	return s, nil
}

// reason returns an error without the path, which was already mentioned.
func reason(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

func absolute(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

// finder finds cases.
type finder struct {
	suite *Suite
	errs  []error
}

func (f *finder) fail(err error) {
	if err != nil {
		f.errs = append(f.errs, err)
	}
}

// settings reads the cases.toml of a folder, if there is one.
func (f *finder) settings(dir string) {
	path := filepath.Join(dir, settingsFile)
	data, err := readSome(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		f.fail(err)
		return
	}
	f.fail(f.suite.parse(path, data))
}

// parse parses the text of a cases.toml.
func (s *Suite) parse(path string, data []byte) error {
	doc, t := manifest.ReadDocument(path, data)
	from := func(name string) string {
		p := t.Text(name)
		if p == "" || filepath.IsAbs(p) {
			return p
		}
		return filepath.Join(filepath.Dir(path), filepath.FromSlash(p))
	}
	s.Worker, s.Manifest, s.Plugin = t.Text("worker"), from("manifest"), from("plugin")
	if s.Plugin != "" && s.Worker != "" {
		t.Faultf("plugin", "keep one of them: a plugin is granted nothing, a worker what its manifest says", "the cases are for a worker already")
	}
	if s.Plugin != "" && s.Manifest != "" {
		t.Faultf("manifest", "", "a plugin has no manifest")
	}
	s.ABI, s.Entry, s.Timeout = t.Text("abi"), t.Text("entry"), t.Duration("timeout", jobhost.MaxTimeout)
	if s.ABI != "" && s.Plugin == "" {
		t.Faultf("abi", "the manifest says the ABI of its workers", "this is for a plugin")
	}
	s.features(t)
	s.Config, s.Secrets, s.Labels = t.TextTable("config"), t.TextTable("secrets"), t.TextTable("labels")
	t.Close()
	return doc.Err()
}

// features reads the features that a plugin may use.
func (s *Suite) features(t *manifest.Table) {
	s.Features = t.Texts("features")
	if len(s.Features) > 0 && s.Plugin == "" {
		t.Faultf("features", "the manifest says the features of its workers", "this is for a plugin")
	}
	for _, name := range s.Features {
		if !slices.Contains(runtime.Features(), name) {
			t.Faultf("features", "the features are "+strings.Join(runtime.Features(), ", "), "%q is not a feature", name)
		}
	}
}

// walk finds the cases in the suite's folder and below.
func (f *finder) walk() {
	err := filepath.WalkDir(f.suite.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if len(f.suite.Cases) > MaxCases {
			return fmt.Errorf("there are more than %d", MaxCases)
		}
		rel, err := filepath.Rel(f.suite.Dir, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		switch {
		case rel == ".":
		case strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_"):
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.IsDir() && caseIn(path):
			f.folder(path, name)
		case strings.HasSuffix(name, ".in"):
			f.flat(filepath.Dir(path), strings.TrimSuffix(name, ".in"))
		}
		return nil
	})
	if err != nil {
		f.fail(fmt.Errorf("open cases: %s: %w", f.suite.Dir, err))
	}
}

// caseIn reports whether a folder is a case.
func caseIn(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, caseFile))
	return err == nil || len(named(dir, "input")) > 0
}

// named returns the files of a folder with a base name and any extension.
func named(dir, base string) []string {
	var names []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if !e.IsDir() && (e.Name() == base || strings.HasPrefix(e.Name(), base+".")) {
			names = append(names, e.Name())
		}
	}
	return names
}

// folder reads a case that is a folder.
func (f *finder) folder(dir, name string) {
	c := &Case{Name: name, dir: dir}
	f.input(c, named(dir, "input"))
	f.finish(c, caseFile, named(dir, "output"))
}

// flat reads a case that is a set of files: NAME.in, NAME.out and NAME.toml.
func (f *finder) flat(dir, name string) {
	c := &Case{Name: name, dir: dir, stem: filepath.Base(filepath.FromSlash(name))}
	f.input(c, []string{c.stem + ".in"})
	f.finish(c, c.stem+".toml", named(dir, c.stem+".out"))
}

func (f *finder) input(c *Case, files []string) {
	if len(files) > 1 {
		f.fail(tooMany(c, "input", files))
		return
	}
	for _, name := range files {
		data, err := readSome(filepath.Join(c.dir, name))
		f.fail(err)
		c.Input = append([]byte{}, data...)
	}
}

// finish reads the settings of a case, and its output.
func (f *finder) finish(c *Case, settings string, outputs []string) {
	path := filepath.Join(c.dir, settings)
	data, err := readSome(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.fail(err)
	}
	f.fail(c.parse(path, data))
	switch {
	case len(outputs) > 1:
		f.fail(tooMany(c, "output", outputs))
	case len(outputs) == 1 && (c.Output.inline != nil || c.Expect.Match != nil):
		f.fail(fmt.Errorf("case %s: its output is in %s and in %s; keep one of them", c.Name, outputs[0], settings))
	case len(outputs) == 1:
		c.Output.path, c.Output.exists = filepath.Join(c.dir, outputs[0]), true
		c.Output.data, err = readSome(c.Output.path)
		f.fail(err)
	}
	f.suite.Cases = append(f.suite.Cases, c)
}

func tooMany(c *Case, what string, files []string) error {
	return fmt.Errorf("case %s: it has more than one %s: %s", c.Name, what, strings.Join(files, ", "))
}
