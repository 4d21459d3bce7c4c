package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
)

func (unreachable) Definition(context.Context, string) (jobhost.Workflow, error) {
	return jobhost.Workflow{}, errUnreachable
}

func (unreachable) CheckWorkflow(context.Context, jobhost.Workflow) error { return errUnreachable }

// While no host runs, definitions by name are those of the manifest that lies here.
func TestDefinitionsOfTheManifest(t *testing.T) {
	t.Parallel()
	const worker = "[worker.words]\nplugin = \"words.wasm\"\nbuild = \"make\"\n"
	const fine = "[[workflow.count.step]]\nname = \"only\"\nworker = \"words\"\n"
	for _, tt := range []struct {
		name, manifest, command string
		code                    int
		out, errOut             string
	}{
		{"check", worker + fine, "check", exitOK, "count is fine: workflow count, 1 step\n", ""},
		{"graph", worker + fine, "graph", exitOK, "only", ""},
		{"wrong", worker + strings.Replace(fine, "words", "wrods", 1), "check", exitFailed, "", "there is no worker \"wrods\""},
		{"both are said", worker + strings.Replace(fine, "words", "wrods", 1), "graph", exitFailed, "", "cannot reach jobhost"},
		{"another", worker, "check", exitFailed, "", "cannot reach jobhost"},
		{"no manifest", "", "check", exitFailed, "", "cannot reach jobhost"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newConsole(t, unreachable{})
			if tt.manifest != "" {
				if err := os.WriteFile(filepath.Join(c.env.dir, defaultManifest), []byte(tt.manifest), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			code := c.run(t, "workflow", tt.command, "count")
			if code != tt.code || !strings.Contains(c.out.String(), tt.out) || !strings.Contains(c.errOut.String(), tt.errOut) {
				t.Errorf("exit code %d, stdout %q, stderr %q", code, c.out.String(), c.errOut.String())
			}
		})
	}
}
