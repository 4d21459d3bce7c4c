package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/cmd/jobhost/scaffold"
)

func newWorkerNewCommand(e workerEnv) *cobra.Command {
	lang := choice{names: scaffold.Names(), near: otherNames}
	var dir string
	cmd := &cobra.Command{
		Use:   "new NAME --lang LANGUAGE",
		Short: "Create a project for a new worker",
		Long: `Create a project for a new worker.

It has a worker that greets, a build.sh, a manifest.toml with which jobhost dev
runs it, cases for jobhost worker test, and the SDK, so that nothing has to be
fetched but compilers and what those are made of. It is put into a new or empty
folder of that name, or into --dir. NAME is what jobs call the worker.

The project's README.md says what it takes to build it; docs/workers.md
compares the languages.`,
		Example: `  jobhost worker new greeter --lang go
  jobhost worker new thumbs --lang rust --dir workers/thumbs`,
		Args: exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			if lang.value == "" {
				return usagef("--lang is missing: use %s", strings.Join(lang.names, ", "))
			}
			if err := jobhost.CheckWorker(args[0]); err != nil {
				return asUsage(err)
			}
			if dir == "" {
				dir = args[0]
			}
			return e.newProject(args[0], lang.value, dir)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().VarP(&lang, "lang", "l", "`LANGUAGE` to write it in: "+strings.Join(lang.names, ", "))
	cmd.Flags().StringVar(&dir, "dir", "", "`FOLDER` to put it into (default NAME)")
	complete(cmd, "lang", lang.names...)
	return cmd
}

// otherNames are what languages are called, too, and what to use for them.
var otherNames = map[string]string{
	"golang": "go", "rs": "rust", "py": "python", "javascript": "js or node", "nodejs": "node",
	"ts": "assemblyscript, js or node", "typescript": "assemblyscript, js or node", "as": "assemblyscript", "c++": "c", "cpp": "c",
}

// newProjectReport is what -o json says of a project.
type newProjectReport struct {
	Worker   string   `json:"worker"`
	Language string   `json:"language"`
	Dir      string   `json:"dir"`
	Files    []string `json:"files"`
	Next     []string `json:"next"`
}

func (e workerEnv) newProject(name, lang, dir string) error {
	l, _ := scaffold.Find(lang) // the flag knows the names
	files, err := scaffold.Files(name, &l)
	if err != nil {
		return err
	}
	if err := scaffold.Write(e.path(dir), files); err != nil {
		return err
	}
	enter := "cd " + shellWord(filepath.Clean(dir))
	next := []string{enter}
	if l.Install != "" {
		next = append(next, l.Install)
	}
	next = append(next, "jobhost dev")
	if e.wantsJSON() {
		r := newProjectReport{Worker: name, Language: lang, Dir: dir, Next: next}
		for i := range files {
			r.Files = append(r.Files, files[i].Path)
		}
		return e.json(&r)
	}
	_, _ = fmt.Fprintf(e.stdout, "%s is a worker in %s, with %s. Go on with %s, and\n\n  %s\n\nand in another terminal\n\n  %s && jobhost submit %s Ada --wait\n",
		printable(dir), l.Title, plural(len(files), "file"), printable(filepath.Join(dir, l.Source)), printable(strings.Join(next, " && ")), printable(enter), name)
	return nil
}
