package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost/host/manifest"
)

func newManifestCommand(e *env) *cobra.Command {
	return newGroup("manifest", "Check and show manifests",
		newManifestCheckCommand(e), newManifestShowCommand(e))
}

func newManifestCheckCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check a manifest and the files that it names, and report all errors",
		Example: `  jobhost manifest check
  jobhost manifest check examples/manifest.toml -o json`,
		Args: between(0, "FILE"),
		RunE: func(_ *cobra.Command, args []string) error { return e.checkManifest(args) },
	}
}

func newManifestShowCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "show [FILE]",
		Short: "Print a manifest with every default filled in, as TOML",
		Example: `  jobhost manifest show
  jobhost manifest show > full.toml`,
		Args: between(0, "FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			if e.wantsJSON() {
				return usagef("manifest show writes TOML only")
			}
			m, err := manifest.Load(e.manifestFile(args))
			if err != nil {
				return err
			}
			_, err = e.stdout.Write(m.Show()) // quotes and escapes all that stands in the file
			return err
		},
	}
}

// manifestFile returns the manifest that is meant: an argument wins over flags.
func (e *env) manifestFile(args []string) string {
	if len(args) > 0 {
		return e.path(args[0])
	}
	return e.manifestPath()
}

// manifestReport is what manifest check says, as JSON.
type manifestReport struct {
	File      string          `json:"file"`
	OK        bool            `json:"ok"`
	Workers   []string        `json:"workers"`
	Workflows []string        `json:"workflows"`
	Faults    manifest.Faults `json:"faults"`
	Warnings  manifest.Faults `json:"warnings"`
}

func (e *env) checkManifest(args []string) error {
	path := e.manifestFile(args)
	m, err := manifest.Load(path)
	report := manifestReport{File: path, OK: err == nil, Workers: []string{}, Workflows: []string{}, Faults: manifest.Faults{}, Warnings: manifest.Faults{}}
	if m != nil {
		for i := range m.Workers {
			report.Workers = append(report.Workers, m.Workers[i].Name)
		}
		for i := range m.Workflows {
			report.Workflows = append(report.Workflows, m.Workflows[i].Name)
		}
		report.Warnings = append(report.Warnings, m.Warnings...)
	}
	if faults, ok := errors.AsType[manifest.Faults](err); ok {
		report.Faults = faults
	}
	if e.wantsJSON() {
		return errors.Join(e.json(report), err)
	}
	if err != nil {
		return err
	}
	for _, w := range m.Warnings {
		e.note("warning: %v", w)
	}
	found := plural(len(m.Workers), "worker")
	if len(m.Workflows) > 0 {
		found += ", " + plural(len(m.Workflows), "workflow")
	}
	if len(m.Schedules) > 0 {
		found += ", " + plural(len(m.Schedules), "schedule")
	}
	_, err = fmt.Fprintf(e.stdout, "%s is fine: %s\n", printable(path), found)
	return err
}
