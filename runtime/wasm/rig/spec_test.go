package rig_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost/runtime/wasm/rig"
)

// suites is where the official tests are: wazero brings them in its module, so
// they are there wherever jobhost can be built.
func suites(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		t.Fatalf("find the module of wazero: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "internal", "integration_test", "spectest")
}

// specFile is one file of the suite.
type specFile struct {
	Commands []specCommand `json:"commands"`
}

type specCommand struct {
	Type       string      `json:"type"`
	Line       int         `json:"line"`
	Name       string      `json:"name"`
	Filename   string      `json:"filename"`
	As         string      `json:"as"`
	Action     specAction  `json:"action"`
	Expected   []specValue `json:"expected"`
	ModuleType string      `json:"module_type"`
	Text       string      `json:"text"`
}

type specAction struct {
	Type   string      `json:"type"`
	Module string      `json:"module"`
	Field  string      `json:"field"`
	Args   []specValue `json:"args"`
}

// tally counts what was done, by the type of command.
type tally struct {
	mu    sync.Mutex
	count map[string]int // protected by mu
}

func (s *tally) add(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count[what]++
}

// TestSpec runs the whole WebAssembly test suite on rewritten modules, and holds
// the verdict of our reader and type checker against it. What was run is counted,
// so that nothing is left out unseen.
func TestSpec(t *testing.T) {
	t.Parallel()
	root := suites(t)
	sum := tally{count: map[string]int{}}
	for _, version := range []string{"v1", "v2"} {
		paths, err := filepath.Glob(filepath.Join(root, version, "testdata", "*.json"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no files of %s: %v", version, err)
		}
		for _, path := range paths {
			name := version + "/" + strings.TrimSuffix(filepath.Base(path), ".json")
			t.Run(name, func(t *testing.T) {
				runSpec(t, &sum, root, name, path)
			})
		}
	}
	var lines []string
	for what, n := range sum.count {
		lines = append(lines, fmt.Sprintf("%s: %d\n", what, n))
	}
	slices.Sort(lines)
	golden(t, "testdata/spec.golden", strings.Join(lines, ""))
}

// spec runs one file.
type spec struct {
	t       *testing.T
	sum     *tally
	name    string // such as v2/i32
	dir     string
	runtime wazero.Runtime
	modules map[string]api.Module
	last    api.Module
}

func runSpec(t *testing.T, sum *tally, root, name, path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file specFile
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	s := spec{t: t, sum: sum, name: name, dir: filepath.Dir(path), modules: map[string]api.Module{}}
	s.runtime = rig.NewRuntime(t.Context(), rig.Rewritten)
	defer s.runtime.Close(t.Context())
	// The module that all others may import from is part of the suite; the host
	// would define it.
	shared, err := os.ReadFile(filepath.Join(root, "testdata", "spectest.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.runtime.InstantiateWithConfig(t.Context(), shared, wazero.NewModuleConfig().WithName("spectest")); err != nil {
		t.Fatal(err)
	}
	for i := range file.Commands {
		c := &file.Commands[i]
		as := ""
		if i+1 < len(file.Commands) && file.Commands[i+1].Type == "register" {
			as = file.Commands[i+1].As
		}
		s.run(c, as)
	}
}

// run does what a command says; as is the name that a module is registered by.
func (s *spec) run(c *specCommand, as string) {
	where := fmt.Sprintf("%s:%d", s.name, c.Line)
	what, err := s.command(c, as)
	version, _, _ := strings.Cut(s.name, "/")
	if reason, ok := leftOut[where]; ok {
		s.sum.add(version + " left out, " + reason)
		if err == nil {
			s.t.Errorf("%s: %s passes, though it is left out", where, c.Type)
		}
		return
	}
	if err != nil {
		s.t.Errorf("%s: %s: %v", where, c.Type, err)
	}
	s.sum.add(version + " " + what)
}

func (s *spec) command(c *specCommand, as string) (what string, err error) {
	switch c.Type {
	case "module":
		return "module", s.module(c, as)
	case "register":
		return "register", nil // was done when the module was instantiated
	case "assert_return", "action":
		return c.Type + " " + c.Action.Type, s.returns(c)
	case "assert_trap", "assert_exhaustion":
		_, err := s.invoke(c)
		return c.Type, s.trapped(c, err)
	case "assert_invalid", "assert_malformed":
		if c.ModuleType == "text" {
			return c.Type + " in text form, not for us", nil
		}
		if _, err := rig.Check(s.read(c)); err == nil {
			return c.Type, errors.New("the module was taken as valid")
		}
		return c.Type, nil
	case "assert_unlinkable", "assert_uninstantiable":
		return c.Type, s.unlinkable(c)
	}
	return c.Type, errors.New("the command is unknown")
}

func (s *spec) read(c *specCommand) []byte {
	b, err := os.ReadFile(filepath.Join(s.dir, c.Filename))
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

func (s *spec) module(c *specCommand, as string) error {
	instance, err := rig.Instantiate(s.t.Context(), s.runtime, rig.Rewritten, s.read(c), as)
	if err != nil {
		s.last = nil
		return err
	}
	s.last = instance
	if c.Name != "" {
		s.modules[c.Name] = instance
	}
	return nil
}

// unlinkable tries modules that are valid but can't be instantiated.
func (s *spec) unlinkable(c *specCommand) error {
	wasm := s.read(c)
	if _, err := rig.Check(wasm); err != nil {
		return fmt.Errorf("the module is refused: %w", err)
	}
	_, err := rig.Instantiate(s.t.Context(), s.runtime, rig.Rewritten, wasm, "")
	// wazero runs modules whose element segments don't fit, and leaves those out.
	if want := c.Text != "out of bounds table access"; (err != nil) != want {
		return errors.Join(errors.New("it is instantiated, or not, against the rule"), err)
	}
	return nil
}

func (s *spec) target(c *specCommand) (api.Module, error) {
	instance := s.last
	if c.Action.Module != "" {
		instance = s.modules[c.Action.Module]
	}
	if instance == nil {
		return nil, errors.New("there is no such module")
	}
	return instance, nil
}

func (s *spec) invoke(c *specCommand) ([]uint64, error) {
	instance, err := s.target(c)
	if err != nil {
		return nil, err
	}
	var args []uint64
	for i := range c.Action.Args {
		words, err := c.Action.Args[i].words()
		if err != nil {
			return nil, err
		}
		args = append(args, words...)
	}
	f := instance.ExportedFunction(c.Action.Field)
	if f == nil {
		return nil, fmt.Errorf("there is no function %q", c.Action.Field)
	}
	return f.Call(s.t.Context(), args...)
}

func (s *spec) returns(c *specCommand) error {
	var results []uint64
	if c.Action.Type == "get" {
		instance, err := s.target(c)
		if err != nil {
			return err
		}
		g := instance.ExportedGlobal(c.Action.Field)
		if g == nil {
			return fmt.Errorf("there is no global %q", c.Action.Field)
		}
		results = []uint64{g.Get()}
	} else {
		var err error
		if results, err = s.invoke(c); err != nil {
			return err
		}
	}
	rest := results
	for i := range c.Expected {
		ok, after, err := c.Expected[i].match(rest)
		if err != nil || !ok {
			return errors.Join(fmt.Errorf("result %d of %s is not %s %s: %x", i, c.Action.Field, c.Expected[i].Type, c.Expected[i].Value, results), err)
		}
		rest = after
	}
	if len(rest) > 0 {
		return fmt.Errorf("%d words are left over", len(rest))
	}
	return nil
}

// traps says what wazero calls the traps of the suite.
var traps = map[string]string{
	"out of bounds memory access":   "out of bounds memory access",
	"indirect call type mismatch":   "indirect call type mismatch",
	"indirect call":                 "indirect call type mismatch",
	"undefined element":             "invalid table access",
	"undefined":                     "invalid table access",
	"out of bounds table access":    "invalid table access",
	"integer overflow":              "integer overflow",
	"invalid conversion to integer": "invalid conversion to integer",
	"integer divide by zero":        "integer divide by zero",
	"unreachable":                   "unreachable",
	"call stack exhausted":          "stack overflow",
}

func (s *spec) trapped(c *specCommand, err error) error {
	want := traps[c.Text]
	if strings.HasPrefix(c.Text, "uninitialized") {
		want = "invalid table access"
	}
	if got := rig.Trap(err); got != want || want == "" {
		return fmt.Errorf("it ends with %q instead of %q", got, c.Text)
	}
	return nil
}

// Why commands of version 1 are left out: 2.0 has changed what they ask for.
const (
	manyResults = "functions and blocks may have several results since 2.0"
	manyTables  = "there may be several tables since 2.0"
	lateSegment = "2.0 writes segments one after the other until one doesn't fit, and wazero leaves out elements that don't"
	deadTypes   = "2.0 asks less of a br_table that is never reached"
)

// leftOut are the commands that don't hold for rewritten modules, with the reason.
// TestSpec fails when one of them does.
var leftOut = map[string]string{
	"v1/elem:143": lateSegment, "v1/elem:152": lateSegment, "v1/elem:161": lateSegment, "v1/elem:170": lateSegment,
	"v1/elem:178": lateSegment, "v1/elem:186": lateSegment, "v1/elem:195": lateSegment, "v1/elem:203": lateSegment,
	"v1/elem:212": lateSegment, "v1/elem:220": lateSegment, "v1/elem:229": lateSegment, "v1/elem:237": lateSegment,
	"v1/func:493": manyResults, "v1/func:497": manyResults,
	"v1/imports:310": manyTables, "v1/imports:314": manyTables, "v1/imports:318": manyTables,
	"v1/linking:207": lateSegment, "v1/linking:228": lateSegment, "v1/linking:236": lateSegment, "v1/linking:248": lateSegment,
	"v1/linking:342": lateSegment, "v1/linking:345": lateSegment, "v1/linking:354": lateSegment,
	"v1/type:53": manyResults, "v1/type:57": manyResults,
	"v1/unreached-invalid:539": deadTypes,
}
