// Package toolchain finds the compilers of guests for tests, which are skipped
// with the reason if one is missing.
package toolchain

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Dir is where `make toolchains` installs packages from npm: JOBHOST_TOOLCHAINS, or a
// folder of the user's cache.
func Dir() string {
	if dir := os.Getenv("JOBHOST_TOOLCHAINS"); dir != "" {
		return dir
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "jobhost", "toolchains")
}

// Modules is the folder of npm packages below [Dir].
func Modules() string { return filepath.Join(Dir(), "node_modules") }

// Path returns the path of a program: in the PATH, or among what npm has installed.
func Path(program string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	path := filepath.Join(Modules(), ".bin", program)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("%s is not installed (see `make toolchains`)", program)
}

// Need returns the path of a program, or skips the test.
func Need(t testing.TB, program string) string {
	t.Helper()
	path, err := Path(program)
	if err != nil {
		t.Skip(err)
	}
	return path
}

// NeedModule returns the folder of an npm package, or skips the test.
func NeedModule(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(Modules(), name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the npm package %s is not installed (see `make toolchains`)", name)
	}
	return path
}

// Env returns the environment of a build: the tools of npm come after those of the PATH.
func Env(extra ...string) []string {
	bin := filepath.Join(Modules(), ".bin")
	return append(os.Environ(), append([]string{
		"PATH=" + os.Getenv("PATH") + string(os.PathListSeparator) + bin, "NODE_PATH=" + Modules(),
	}, extra...)...)
}

// Build runs a command in a folder, and fails the test with its output.
func Build(t testing.TB, dir string, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}
