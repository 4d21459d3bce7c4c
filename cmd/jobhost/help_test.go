package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

var update = flag.Bool("update", false, "write the golden files anew")

// allCommands calls do for each command but those that cobra adds.
func allCommands(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, child := range cmd.Commands() {
		if child.Name() != "help" && child.Name() != "completion" {
			allCommands(child, do)
		}
	}
}

func testRoot() *cobra.Command {
	return newRootCommand(newEnv(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}))
}

// TestHelp compares what --help prints with testdata/help. The commands that
// show the number of processors are left to TestHelpIsComplete.
func TestHelp(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"jobhost", "submit", "job", "job ls", "job show", "job result", "job logs", "job why", "job cancel", "job retry", "job rm",
		"job watch", "dead", "dead ls", "dead show", "dead summary", "dead retry", "dead rm", "worker ls", "worker new", "worker show", "worker reload", "worker inspect", "kv", "kv ls", "kv get", "kv set", "kv rm",
		"state", "state ls", "state get", "state set", "state watch", "state gc", "state rm",
		"schedule", "schedule ls", "schedule show", "schedule run", "schedule pause", "schedule resume", "run", "dev", "manifest", "manifest check",
		"workflow", "workflow check", "workflow graph", "workflow run", "workflow ls", "workflow show", "workflow trace", "workflow watch",
		"workflow signal", "workflow cancel", "workflow retry", "workflow rm",
		"fiber", "fiber start", "fiber ls", "fiber status", "fiber send", "fiber watch", "fiber pause", "fiber resume", "fiber stop", "manifest show", "backup", "restore", "repair", "version",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			c := newConsole(t, struct{ jobhost.Server }{})
			args := append(strings.Fields(strings.TrimPrefix(path, "jobhost")), "--help")
			if code := c.run(t, args...); code != exitOK || c.errOut.Len() > 0 {
				t.Fatalf("exit code %d, stderr %q", code, c.errOut.String())
			}
			golden := filepath.Join("testdata", "help", strings.ReplaceAll(path, " ", "-")+".txt")
			if *update {
				if err := os.WriteFile(golden, c.out.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.out.String(); got != string(want) {
				t.Errorf("%s differs; go test ./cmd/jobhost -run TestHelp -update\n%s", golden, got)
			}
		})
	}
}

// badDefault is in the help of a flag whose text says its default, which cobra says as well.
var badDefault = regexp.MustCompile(`\(default \)|\(default [^)]*\) \(default`)

// TestHelpIsComplete wants of every command what its help needs.
func TestHelpIsComplete(t *testing.T) {
	t.Parallel()
	allCommands(testRoot(), func(cmd *cobra.Command) {
		if cmd.Hidden {
			return // a host starts it, not people
		}
		group := cmd.HasSubCommands() && cmd.HasParent()
		if usage := cmd.Flags().FlagUsages(); badDefault.MatchString(usage) {
			t.Errorf("%s says a default twice, or an empty one:\n%s", cmd.CommandPath(), usage)
		}
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: its short description is %q", cmd.CommandPath(), cmd.Short)
		}
		if !group && !strings.HasPrefix(cmd.Example, "  ") {
			t.Errorf("%s: its example is %q", cmd.CommandPath(), cmd.Example)
		}
	})
}

// TestExamplesParse tries every line of the examples up to the point where
// the command would run.
func TestExamplesParse(t *testing.T) {
	t.Parallel()
	command := regexp.MustCompile(`jobhost( [^|)>]*)`)
	word := regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`)
	allCommands(testRoot(), func(described *cobra.Command) {
		for line := range strings.Lines(described.Example) {
			for _, match := range command.FindAllStringSubmatch(line, -1) {
				var args []string
				for _, w := range word.FindAllString(match[1], -1) {
					args = append(args, strings.Trim(strings.ReplaceAll(w, "$ID", "id"), `"'`))
				}
				cmd, rest, err := testRoot().Find(args)
				if err == nil {
					err = cmd.ParseFlags(rest)
				}
				if err == nil {
					err = cmd.ValidateArgs(cmd.Flags().Args())
				}
				if err != nil || !cmd.Runnable() {
					t.Errorf("%s: %q: %v", described.CommandPath(), strings.TrimSpace(line), err)
				}
			}
		}
	})
}
