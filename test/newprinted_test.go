package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// terminal is a shell in a folder whose PATH has jobhost, and npm as it is once packages are
// installed: see install.
type terminal struct {
	t        *testing.T
	dir, bin string
}

func openTerminal(t *testing.T, dir string) *terminal {
	t.Helper()
	program, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(program, filepath.Join(bin, "jobhost")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "npm"), []byte("#!/bin/sh\n[ \"$*\" = install ]\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return &terminal{t: t, dir: dir, bin: bin}
}

// line returns a shell that runs a command line.
func (s *terminal) line(command string) []string {
	return []string{"env", "-C", s.dir, "-u", "JOBHOST_MANIFEST", "JOBHOST_TOOLCHAINS=/nowhere", "PATH=" + s.bin + ":" + os.Getenv("PATH"), "sh", "-c", command}
}

// run runs a command line and returns what it printed on stdout.
func (s *terminal) run(command string) string {
	s.t.Helper()
	argv := s.line(command)
	cmd := exec.CommandContext(s.t.Context(), argv[0], argv[1:]...)
	cmd.Stderr = s.t.Output()
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("$ %s\n%s%v", command, out, err)
	}
	return string(out)
}

// indented returns the lines of a text that are set apart as commands.
func indented(text string) (commands []string) {
	for line := range strings.Lines(text) {
		if command, ok := strings.CutPrefix(line, "  "); ok {
			commands = append(commands, strings.TrimSpace(command))
		}
	}
	return commands
}

// fenced returns the commands of a project's README, without their comments.
func fenced(text string) (commands []string) {
	_, after, _ := strings.Cut(text, "```\n")
	block, _, _ := strings.Cut(after, "```")
	for line := range strings.Lines(block) {
		command, _, _ := strings.Cut(line, " # ")
		commands = append(commands, strings.TrimSpace(command))
	}
	return commands
}

// needsHost tells the commands of a README apart that run a host, or ask one.
func needsHost(command string) bool {
	return command == "jobhost dev" || strings.HasPrefix(command, "jobhost submit ")
}

// TestNewWorkerAsPrinted runs the commands that worker new prints, and those of the project's README that need a host, in
// the folder where they are shown, in each language whose tools are installed. [TestNewWorker] runs the others.
func TestNewWorkerAsPrinted(t *testing.T) {
	t.Parallel()
	for lang, need := range newWorkers {
		t.Run(lang, func(t *testing.T) {
			t.Parallel()
			need(t)
			home := openTerminal(t, t.TempDir())
			printed := indented(home.run("jobhost worker new greeter --lang " + lang))
			if len(printed) != 2 {
				t.Fatalf("printed %q, want two commands", printed)
			}
			s := &site{t: t, dir: filepath.Join(home.dir, "greeter"), addr: freeAddr(t)}
			install(t, s.dir)
			s.replace("[host]\n", "[host]\nlisten = \""+s.addr+"\"\n")
			s.program = home.line(strings.Replace(printed[0], "jobhost dev", "exec jobhost dev", 1)) // to stop it
			host := s.begin()
			host.awaitLog("jobhost: built greeter")
			host.awaitReady(s)
			if got := home.run(printed[1]); got != "hello, Ada" {
				t.Errorf("$ %s\n%q\n%s", printed[1], got, host.logText())
			}

			readme, err := os.ReadFile(filepath.Join(s.dir, "README.md"))
			if err != nil {
				t.Fatal(err)
			}
			project := openTerminal(t, s.dir)
			for _, command := range fenced(string(readme)) {
				if needsHost(command) && command != "jobhost dev" { // which runs already
					if got := project.run(command); got != "hello, Ada" {
						t.Errorf("$ %s\n%q", command, got)
					}
				}
			}
			if code := host.stop(); code != 0 {
				t.Errorf("exit code %d:\n%s", code, host.logText())
			}
		})
	}
}
