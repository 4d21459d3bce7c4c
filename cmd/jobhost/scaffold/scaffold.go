// Package scaffold makes projects of new workers: sources that work, what builds and tests them, and the
// SDK they need. templates has what is written, one folder for each language and one for all; a file there is a
// text/template named as it is in the project, with .tmpl behind it.
package scaffold

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/plugins/sdk"
)

//go:embed templates
var templates embed.FS

// File is a file of a project.
type File struct {
	Path       string // relative to the project's folder, with slashes
	Data       []byte
	Executable bool
}

// project is what templates know.
type project struct {
	Language

	Name   string // of the worker
	Key    string // the name as the manifest writes it
	Plugin string // the file that is built
	SDK    string // the folder of the SDK
}

// Files returns the files of a project, by their paths. name must be that of a worker.
func Files(name string, l *Language) ([]File, error) {
	if err := jobhost.CheckWorker(name); err != nil {
		return nil, err
	}
	p := project{Language: *l, Name: name, Key: name, Plugin: name + l.extension, SDK: l.sdk[0].to}
	if strings.Contains(name, ".") {
		p.Key = `"` + name + `"` // a bare dot would make tables of it
	}
	var files []File
	for _, s := range append(slices.Clone(l.sdk), source{"LICENSE", p.SDK + "/LICENSE"}) {
		part, err := s.files()
		if err != nil {
			return nil, err
		}
		files = append(files, part...)
	}
	for _, folder := range []string{"common", l.Name} {
		part, err := p.files(path.Join("templates", folder))
		if err != nil {
			return nil, err
		}
		files = append(files, part...)
	}
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return files, nil
}

// files executes the templates of a folder.
func (p *project) files(folder string) (files []File, err error) {
	err = fs.WalkDir(templates, folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := templates.ReadFile(name)
		if err != nil {
			return err
		}
		t, err := template.New(name).Option("missingkey=error").Parse(string(data))
		if err != nil {
			return err
		}
		var text bytes.Buffer
		if err := t.Execute(&text, p); err != nil {
			return err
		}
		files = append(files, newFile(target(strings.TrimPrefix(name, folder+"/")), text.Bytes()))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("make a project in %s: %w", p.Title, err)
	}
	return files, nil
}

// target returns the path in the project of a template's file. The tools of Go would take
// some names for what they are, and leave out or look into what has them.
func target(name string) string {
	name = strings.TrimSuffix(name, ".tmpl")
	switch name {
	case "dot.gitignore":
		return ".gitignore"
	case "sdk.go.mod":
		return "sdk/go.mod"
	}
	return name
}

// relative is a link that leads to another file of the repository.
var relative = regexp.MustCompile(`\]\(([^)#/:][^)#:]*)(#[^)]*)?\)`)

// relink lets the links of a text that lies in a folder of the repository lead there from anywhere.
func relink(folder string, text []byte) []byte {
	return relative.ReplaceAllFunc(text, func(link []byte) []byte {
		part := relative.FindSubmatch(link)
		return fmt.Appendf(nil, "](https://github.com/jobhost/jobhost/blob/main/%s%s)", path.Join(folder, string(part[1])), part[2])
	})
}

// files returns the part of the SDK as it is in the project: without tests of its own.
func (s *source) files() (files []File, err error) {
	err = fs.WalkDir(sdk.Files, s.from, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".pyc") {
			return err
		}
		data, err := sdk.Files.ReadFile(name)
		if err != nil {
			return err
		}
		if path.Ext(name) == ".md" {
			data = relink(path.Join("plugins/sdk", path.Dir(name)), data)
		}
		files = append(files, newFile(s.to+strings.TrimPrefix(name, s.from), data))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find the SDK: %w", err)
	}
	return files, nil
}

func newFile(name string, data []byte) File {
	return File{Path: name, Data: data, Executable: bytes.HasPrefix(data, []byte("#!"))}
}
