package rig_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/jobhost/jobhost/internal/testing/goguest"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/rig"
)

// originals are the modules that mutants are made of, besides those that are
// generated.
type originals struct {
	examples [][]byte                 // and guests
	large    func() ([][]byte, error) // examples in Go, which few mutants are made of; they are built when they are needed
	suite    []string                 // where the modules of the official tests are that import nothing
}

// oneLarge is how rarely a mutant is made of a large module.
const oneLarge = 200

func newOriginals() (*originals, error) {
	o := &originals{examples: [][]byte{
		guests.Noop, guests.Echo, guests.Outcomes, guests.Exit, guests.Init, guests.InitSpin, guests.InitTrap, guests.InitTable,
		guests.SHA256, guests.Canary, guests.CanaryTable, guests.States, guests.Extism, guests.Command, guests.LibC,
	}}
	examples, err := goguest.Prebuilt()
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(examples)) {
		if b := examples[name]; len(b) <= large {
			o.examples = append(o.examples, b)
		}
	}
	o.large = sync.OnceValues(largeExamples)
	o.suite, err = suiteModules()
	return o, err
}

// large is the size from which a module takes a second to compile.
const large = 1 << 20

func largeExamples() (all [][]byte, err error) {
	examples, err := goguest.Examples()
	for _, name := range slices.Sorted(maps.Keys(examples)) {
		if b := examples[name]; len(b) > large {
			all = append(all, b)
		}
	}
	return all, err
}

// suiteModules lists modules of the official tests.
func suiteModules() ([]string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		return nil, fmt.Errorf("find the module of wazero: %w", err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "internal", "integration_test", "spectest", "v2", "testdata")
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no files in %s: %w", dir, err)
	}
	var all []string
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var file specFile
		if err := json.Unmarshal(text, &file); err != nil {
			return nil, err
		}
		for i := range file.Commands {
			c := &file.Commands[i]
			if c.Type != "module" {
				continue
			}
			path := filepath.Join(dir, c.Filename)
			b, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			if m, err := module.Read(b); err == nil && len(m.Imports) == 0 {
				all = append(all, path)
			}
		}
	}
	return all, nil
}

// mutant makes the mutant of a number. Most are damaged such that they are valid,
// the others in any way.
func (o *originals) mutant(n int) ([]byte, error) {
	rng := randomOf(n)
	original, err := o.original(rng, n)
	if err != nil {
		return nil, err
	}
	if rng.IntN(3) > 0 {
		for range 1 + rng.IntN(3) {
			original = tame(rng, original)
		}
		return original, nil
	}
	return mutate(rng, original, o.examples[rng.IntN(len(o.examples))]), nil
}

// randomOf are the choices of a number.
func randomOf(n int) *rand.Rand { return rand.New(rand.NewPCG(uint64(n), 1)) }

func (o *originals) original(rng *rand.Rand, n int) ([]byte, error) {
	if n%oneLarge == oneLarge-1 {
		large, err := o.large()
		if err != nil {
			return nil, err
		}
		if len(large) > 0 {
			return large[rng.IntN(len(large))], nil
		}
	}
	switch rng.IntN(4) {
	case 0:
		return o.examples[rng.IntN(len(o.examples))], nil
	case 1:
		return os.ReadFile(o.suite[rng.IntN(len(o.suite))])
	case 2:
		return generated(uint64(n), "press-simd")
	}
	return generated(uint64(n), "all")
}

func generated(seed uint64, profile string) ([]byte, error) {
	for _, p := range rig.Profiles() {
		if p.Name == profile {
			program, err := rig.Generate(seed, p, nil)
			if err != nil {
				return nil, err
			}
			return program.Wasm, nil
		}
	}
	return nil, fmt.Errorf("there is no profile %s", profile)
}
