package archtest

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Rules are what a tree is checked against. Folders are relative to the root of
// the module; "" is the root package; a folder includes those below it.
type Rules struct {
	Layers []Layer

	// Drivers are the folders of concrete drivers, as patterns of [path.Match].
	// Only DriverUsers, the driver itself and the tests of DriverTesters may
	// import one; all others know only the interface.
	Drivers       []string
	DriverUsers   []string
	DriverTesters []string

	// Walls are dependencies that packages may not have, even indirectly.
	Walls []Wall

	// Goroutines are the folders in which a bare go statement is allowed, each
	// with the reason. The doc comment of the package must state it too.
	Goroutines map[string]string

	// Guests are folders of code that runs in a sandbox: there, init is how a
	// worker is registered, and goroutines and output are not restricted.
	Guests []string
	// Printers are folders that may write to the standard output.
	Printers []string
	// Suites are the last elements of folders with tests for other packages to
	// run: they count as test files.
	Suites []string

	// MaxFile is the maximum number of lines of a file; above LongFile it is listed.
	MaxFile, LongFile int
}

// Layer says which of the module's packages those of a folder may import.
type Layer struct {
	Dir string
	// May lists folders that it may import, besides its own.
	May []string
	// Tests lists further folders for its tests.
	Tests []string
	// Why is the message for any other import.
	Why string
}

// Wall keeps packages from depending on others, even indirectly. Tests don't
// count, nor do suites that only tests import.
type Wall struct {
	// From lists folders; "host/..." means host and all folders below it.
	From []string
	// To lists import paths of other modules, or folders of this one; each
	// includes what is below it.
	To  []string
	Why string
}

// House returns the rules of jobhost: the arrows of docs/architecture.md and
// the conventions of CONTRIBUTING.md.
func House() Rules {
	vocabulary := []string{"", "internal"}
	everything := []string{"", "internal", "runtime", "state", "netproxy", "host", "client"}
	const pillar = "a pillar knows the vocabulary, internal/ and itself; host joins the pillars"
	return Rules{
		Layers: []Layer{
			{Dir: "", May: []string{"internal"}, Tests: []string{""}, Why: "the root package is the vocabulary and has no machinery"},
			{Dir: "internal", May: vocabulary, Why: "any package may import internal/, so it imports only the vocabulary"},
			{Dir: "flow", May: vocabulary, Why: "definitions of workflows are built without a host"},
			{Dir: "flow/flowtest", May: []string{"", "internal", "flow", "host/workflow"}, Why: "workflows are tested without a host, but by its rules"},
			{Dir: "runtime", May: vocabulary, Why: pillar},
			{Dir: "runtime/process", May: []string{"", "internal", "runtime", "plugins/sdk/process"}, Why: "a process is spoken to in the protocol of its SDK"},
			{Dir: "state", May: vocabulary, Why: pillar},
			{Dir: "netproxy", May: vocabulary, Why: pillar},
			{Dir: "client", May: []string{"", "internal", "host/api/wire"}, Tests: []string{"host", "runtime"}, Why: "a client knows a host by its API only"},
			{Dir: "host/api/wire", May: vocabulary, Why: "client and host share the forms of the API, so they know neither"},
			{Dir: "host", May: []string{"", "internal", "runtime", "state", "netproxy"}, Tests: []string{"client"}, Why: "host joins the pillars; commands and clients are above it"},
			{Dir: "plugins", Tests: []string{"", "flow", "internal/testing/toolchain"}, Why: "guests are built without the host: they know their SDK only"},
			{Dir: "plugins/sdk/sdktest", May: []string{"", "internal", "runtime"}, Why: "runs guests as a host does, for the tests of SDKs"},
			{Dir: "plugins/internal/guesttest", May: []string{"plugins", "internal/testing/goguest"}, Why: "runs guests in tests without a line of the host"},
			{Dir: "plugins/internal/flowguest", May: []string{"", "flow", "host/manifest", "plugins/sdk"}, Why: "joins the handlers of a guest and the workflow of its manifest, for tests"},
			{Dir: "cmd", May: append(everything, "plugins/sdk"), Why: "commands are built from host, client and drivers"},
			{Dir: "bench", May: append(everything, "cmd", "plugins/sdk/process"), Why: "benchmarks run the host from outside"},
			{Dir: "test", May: append(everything, "cmd"), Why: "whole-system tests run the host from outside"},
		},
		Drivers:       []string{"host/queue/*queue", "state/*state", "state/payload/*payload", "runtime/wasm", "runtime/process"},
		DriverUsers:   []string{"cmd", "test", "bench", "plugins/sdk/sdktest"},
		DriverTesters: []string{"host", "client", "runtime/process", "runtime/wasiabi"},
		Walls: []Wall{
			{From: []string{"runtime"}, To: []string{"runtime/jobabi", "runtime/wasiabi", "runtime/extismabi"}, Why: "the interfaces of an engine hold for every ABI"},
			{From: []string{"host/...", "client/...", "state/...", "netproxy/..."}, To: []string{"github.com/tetratelabs/wazero"}, Why: "the engine is a driver, which cmd/jobhost chooses"},
			{From: []string{"", "cmd/...", "host/...", "client/...", "runtime/...", "state/...", "netproxy/...", "flow/..."}, To: []string{"internal/testing"}, Why: "the product has no part that is for tests"},
		},
		Goroutines: map[string]string{
			"host/scope":           "starts the goroutines of everybody else",
			"host/op":              "there is no notification when a native Go channel is ready, so one goroutine waits for it",
			"netproxy":             "net/http blocks its caller, so each request in flight has a goroutine; Stop waits for all of them",
			"netproxy/guard":       "tries two addresses of a name at once; the losers end before the attempt does",
			"state/firestorestate": "a listener of each open job, which ends with the last feed; Close waits for all of them",
			"runtime/process":      "a process has goroutines that read what it says and wait for its end; Close of its plugin waits for them",
			"internal/sqlitedb":    "lies below host/scope; its writer and notifier end with Close, which waits for them",
			"internal/pgdb":        "lies below host/scope; its writer ends with Close, its heartbeat with the term, and both are waited for",
		},
		Guests:   []string{"plugins", "internal/testing/guests"},
		Printers: []string{"cmd"},
		Suites:   []string{"queuetest", "runtimetest", "statetest", "hosttest", "payloadtest", "sdktest", "toolchain"},
		MaxFile:  500,
		LongFile: 400,
	}
}

// layer returns the innermost layer that a folder belongs to.
func (r *Rules) layer(dir string) (Layer, bool) {
	var found []Layer
	for _, l := range r.Layers {
		if within(dir, l.Dir) {
			found = append(found, l)
		}
	}
	if len(found) == 0 {
		return Layer{}, false
	}
	return slices.MaxFunc(found, func(a, b Layer) int { return cmp.Compare(len(a.Dir), len(b.Dir)) }), true
}

// driver returns the folder of the driver that a folder belongs to, or "".
// Suites beside drivers don't count.
func (r *Rules) driver(dir string) string {
	for ; dir != "." && dir != ""; dir = path.Dir(dir) {
		for _, pattern := range r.Drivers {
			if ok, _ := path.Match(pattern, dir); ok {
				return dir
			}
		}
	}
	return ""
}

// isTest reports whether a file is test code.
func (r *Rules) isTest(f *file) bool {
	return strings.HasSuffix(f.path, "_test.go") || slices.Contains(r.Suites, path.Base(f.dir))
}

func (l Layer) mayImport(target string) bool {
	return l.Dir != "" && within(target, l.Dir) || within(target, l.May...)
}

func (l Layer) name() string { return display(l.Dir) }
