package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/toolchain"
)

// newProject makes a project with a worker named greeter, as users do, and returns its folder.
func newProject(t *testing.T, lang string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "greeter")
	inProject(t, "", "worker", "new", "greeter", "--lang", lang, "--dir", dir)
	return dir
}

// inProject runs jobhost in a folder and returns what it printed.
func inProject(t *testing.T, dir string, args ...string) string {
	t.Helper()
	program, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "JOBHOST_MANIFEST=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("jobhost %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestNewWorker makes a project in each language whose tools are installed, and runs the commands of its README that need
// no host: they build it, and test it as a whole and in parts. [TestNewWorkerAsPrinted] runs the others.
func TestNewWorker(t *testing.T) {
	t.Parallel()
	for lang, need := range newWorkers {
		t.Run(lang, func(t *testing.T) {
			t.Parallel()
			need(t)
			dir := newProject(t, lang)
			install(t, dir)
			readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
			if err != nil {
				t.Fatal(err)
			}
			project, out := openTerminal(t, dir), ""
			for _, command := range fenced(string(readme)) {
				if !needsHost(command) && command != "cargo test" { // which is no part of what CI installs
					out += project.run("exec 2>&1; " + command)
				}
			}
			if !strings.Contains(out, " 2 ok, 0 failed") {
				t.Errorf("the cases: %s", out)
			}
			if lang == "go" {
				build(t, dir, "go vet .")
			}
		})
	}
}

// newWorkers are the languages of projects, with what they need.
var newWorkers = map[string]func(*testing.T){
	"go": nothing, "c": programs("clang", "wasm-ld"), "rust": needRust, "zig": programs("zig"),
	"assemblyscript": programs("node", "asc"), "js": needModules("quickjs-wasi", "binaryen"),
	"python": needPython, "node": needModules("esbuild", "@grpc/grpc-js", "protobufjs"),
}

// A build without its compiler says what to install.
func TestNewWorkerWithoutTools(t *testing.T) {
	t.Parallel()
	bare := t.TempDir() // a PATH with only what scripts need
	for _, name := range []string{"sh", "dirname", "basename", "mktemp", "rm", "find", "grep"} {
		if err := os.Symlink(toolchain.Need(t, name), filepath.Join(bare, name)); err != nil {
			t.Fatal(err)
		}
	}
	for lang, want := range map[string]string{
		"go": "install Go 1.26", "c": "apt install clang lld", "rust": "rustup target add", "zig": "run npm install", "js": "install Node 20",
		"assemblyscript": "run npm install", "python": "apt install python3-grpcio", "node": "install Node 20",
	} {
		t.Run(lang, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), "./build.sh")
			cmd.Dir = newProject(t, lang)
			cmd.Env = []string{"PATH=" + bare, "HOME=" + bare, "RUSTC=no-rustc", "PYTHON=no-python"}
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
				t.Errorf("%v: it does not say %q:\n%s", err, want, out)
			}
		})
	}
}

func nothing(*testing.T) {}

func programs(names ...string) func(t *testing.T) {
	return func(t *testing.T) {
		t.Helper()
		for _, name := range names {
			toolchain.Need(t, name)
		}
	}
}

func needModules(names ...string) func(t *testing.T) {
	return func(t *testing.T) {
		t.Helper()
		toolchain.Need(t, "node")
		for _, name := range names {
			toolchain.NeedModule(t, name)
		}
	}
}

// needRust asks the SDK itself, which knows where compilers may be.
func needRust(t *testing.T) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "../plugins/sdk/rust/build.sh", "-V").CombinedOutput(); err != nil {
		t.Skipf("%s", out)
	}
}

// needPython checks for the modules that the SDK depends on.
func needPython(t *testing.T) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", "import grpc, google.protobuf, cryptography").CombinedOutput(); err != nil {
		t.Skipf("/usr/bin/python3 lacks modules (Debian: python3-grpcio, python3-protobuf, python3-cryptography): %v %s", err, out)
	}
}

// install does the same as `npm install`, with packages that `make toolchains` has installed.
func install(t *testing.T, dir string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var project struct {
		Dependencies    map[string]string `json:"dependencies"`
		DevDependencies map[string]string `json:"devDependencies"`
	}
	if err := errors.Join(err, json.Unmarshal(data, &project)); err != nil {
		t.Fatal(err)
	}
	links := map[string]string{".bin": filepath.Join(toolchain.Modules(), ".bin")}
	for _, packages := range []map[string]string{project.Dependencies, project.DevDependencies} {
		for name, version := range packages {
			links[name] = filepath.Join(toolchain.Modules(), name)
			if folder, own := strings.CutPrefix(version, "file:"); own {
				links[name] = filepath.Join(dir, folder)
			}
		}
	}
	for name, target := range links {
		link := filepath.Join(dir, "node_modules", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o700), os.Symlink(target, link)); err != nil {
			t.Fatal(err)
		}
	}
}

// build runs a command in a project.
func build(t *testing.T, dir, command string) {
	t.Helper()
	toolchain.Build(t, dir, append(os.Environ(), "JOBHOST_TOOLCHAINS=/nowhere"), "sh", "-c", command)
}

// TestNewWorkerIsDeveloped is an author's experience: a project is built and run, its source is changed, and the next
// job uses the change. A failed build changes nothing. Only languages with fast builds are tested; the others don't
// differ otherwise.
func TestNewWorkerIsDeveloped(t *testing.T) {
	t.Parallel()
	tests := []struct {
		lang, source string
		need         func(t *testing.T)
		good, broken string // code, and its replacement
		fault        string // the part of the error that is shown
	}{
		{"go", "main.go", nothing, `"hello, "`, `"hello, `, "main.go:"},
		{"c", "worker.c", programs("clang", "wasm-ld"), `("hello, ")`, `("hello, "`, "the build of greeter failed: exit status 1"},
		{"zig", "worker.zig", programs("zig"), "return job.print", "job.print", "worker.zig:"},
		{"python", "src/worker.py", needPython, "greet(job):", "greet(job)", "SyntaxError"},
		{"node", "worker.js", needModules("esbuild", "@grpc/grpc-js", "protobufjs"), "serve((job)", "serve((job", "worker.js:"},
	}
	for _, tt := range tests {
		t.Run(tt.lang, func(t *testing.T) {
			t.Parallel()
			tt.need(t)
			s := &site{t: t, dir: newProject(t, tt.lang), addr: freeAddr(t)}
			install(t, s.dir)
			s.replace("[host]\n", fmt.Sprintf("[host]\nlisten = %q\n", s.addr))
			host := s.launch("dev") // the plugin doesn't exist before its build
			host.greeted("hello, Ada")
			host.awaitLines(1, " | info greeting Ada")

			source, err := os.ReadFile(filepath.Join(s.dir, tt.source))
			if err != nil {
				t.Fatal(err)
			}
			change := func(old, replacement string) {
				s.put(tt.source, []byte(strings.ReplaceAll(string(source), old, replacement)))
			}
			change("hello, ", "good morning, ")
			host.awaitLines(1, "worker greeter: changed, version 2")
			host.greeted("good morning, Ada")

			change(tt.good, tt.broken)
			host.awaitLines(1, tt.fault)
			host.greeted("good morning, Ada")

			change("hello, ", "good night, ")
			host.awaitLines(1, "worker greeter: changed, version 3")
			host.greeted("good night, Ada")
			if code := host.stop(); code != 0 {
				t.Errorf("exit code %d:\n%s", code, host.logText())
			}
		})
	}
}

// greeted runs a job of the worker greeter, which must return the given text.
func (p *process) greeted(want string) {
	p.t.Helper()
	job, err := p.SubmitWait(p.t.Context(), jobhost.Spec{Worker: "greeter", Payload: []byte("Ada\n"), MaxAttempts: 1})
	if err != nil || job.State != jobhost.Succeeded {
		p.t.Fatalf("job is %v, %v: %+v\n%s", job.State, err, job.Failures, p.logText())
	}
	if result, err := p.Result(p.t.Context(), job.ID, 0); err != nil || string(result.Data) != want {
		p.t.Fatalf("job returned %q, %v; want %q\n%s", result.Data, err, want, p.logText())
	}
}
