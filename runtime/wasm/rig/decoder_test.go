package rig_test

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/rig"
)

// TestDecoders compares where the instructions of functions begin according to
// package module and to wasm-objdump, for generated modules and for such with a
// few damaged bytes. Only what package module takes is compared: it may refuse
// more.
func TestDecoders(t *testing.T) {
	t.Parallel()
	tool, err := exec.LookPath("wasm-objdump")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("wasm-objdump is not installed; Debian's package wabt has it")
		}
		t.Skip("decoders are not compared: wasm-objdump is not installed; Debian's package wabt has it")
	}
	total := number(t, envCount, 100)
	const batch = 200
	sum := comparison{t: t, tool: tool}
	for from := 0; from < total; from += batch {
		sum.compare(candidates(t, from, min(from+batch, total)))
	}
	if sum.modules < 2*total || sum.instructions < 200*total {
		t.Errorf("only %d instructions of %d modules were compared", sum.instructions, sum.modules)
	}
	t.Logf("%d instructions of %d modules begin at the same bytes", sum.instructions, sum.modules)
}

// mutants is how many damaged modules are made of each.
const mutants = 2

// candidates are generated modules and damaged ones that package module takes.
func candidates(t *testing.T, from, to int) [][]byte {
	profiles := rig.Profiles()
	var all [][]byte
	for n := from; n < to; n++ {
		program, err := rig.Generate(uint64(n), profiles[n%(len(profiles)-1)], nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, program.Wasm)
		rng := rand.New(rand.NewPCG(uint64(n), 3))
		for made, tries := 0, 0; made < mutants && tries < 400; tries++ {
			if damaged := damage(rng, program.Wasm); structured(damaged) {
				all = append(all, damaged)
				made++
			}
		}
	}
	return all
}

// damage changes one to three bytes of the code.
func damage(rng *rand.Rand, wasm []byte) []byte {
	b := bytes.Clone(wasm)
	m, err := module.Read(wasm)
	if err != nil {
		return b
	}
	body := m.Bodies[rng.IntN(len(m.Bodies))]
	for range 1 + rng.IntN(3) {
		at := body.Code + rng.IntN(body.End-body.Code)
		if rng.IntN(4) == 0 { // an instruction with a prefix
			copy(b[at:body.End-1], []byte{0xfc + byte(rng.IntN(2)), byte(rng.Uint32()), byte(rng.Uint32())})
			continue
		}
		b[at] = byte(rng.Uint32())
	}
	return b
}

// structured reports whether package module takes the structure of a module.
// Instructions with a prefix must be in canonical form: wasm-objdump knows no
// other number behind 0xfc.
func structured(wasm []byte) bool {
	m, err := module.Read(wasm)
	if err != nil {
		return false
	}
	for f := range m.Bodies {
		code := m.Instructions(f)
		for code.Next() {
			if code.Op > 0xff && !bytes.HasPrefix(wasm[code.Start:], module.AppendOpcode(nil, code.Op)) {
				return false
			}
		}
		if code.Err() != nil {
			return false
		}
	}
	return true
}

// comparison adds up what was compared.
type comparison struct {
	t                     *testing.T
	tool                  string
	modules, instructions int
}

// compare lists all modules with one call of the tool, which is most of the time
// that it takes; with several when it refuses one, since it ends there.
func (c *comparison) compare(modules [][]byte) {
	c.t.Helper()
	dir := c.t.TempDir()
	var paths []string
	for i, wasm := range modules {
		path := filepath.Join(dir, strconv.Itoa(i)+".wasm")
		if err := os.WriteFile(path, wasm, 0o600); err != nil {
			c.t.Fatal(err)
		}
		paths = append(paths, path)
	}
	for len(paths) > 0 {
		var stderr strings.Builder
		cmd := exec.CommandContext(c.t.Context(), c.tool, append([]string{"-d"}, paths...)...)
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		listed := listings(out)
		if err != nil {
			last := filepath.Base(paths[len(listed)-1])
			n, _ := strconv.Atoi(strings.TrimSuffix(last, ".wasm"))
			c.t.Errorf("module %d is refused by wasm-objdump: %s\n%s", n, stderr.String(), rig.Text(modules[n]))
			delete(listed, last)
		}
		for name, theirs := range listed {
			n, _ := strconv.Atoi(strings.TrimSuffix(name, ".wasm"))
			c.modules++
			if diff := c.diff(modules[n], theirs); diff != "" {
				c.t.Errorf("module %d: %s\n%s", n, diff, rig.Text(modules[n]))
			}
		}
		if err == nil {
			return
		}
		paths = paths[len(listed)+1:]
	}
}

// diff says where instructions begin at different bytes first.
func (c *comparison) diff(wasm []byte, theirs []int) string {
	m, err := module.Read(wasm)
	if err != nil {
		return err.Error()
	}
	n := 0
	for f := range m.Bodies {
		code := m.Instructions(f)
		for code.Next() {
			if n == len(theirs) || theirs[n] != code.Start {
				return fmt.Sprintf("function %d: an instruction begins at byte %#x, not to wasm-objdump", f, code.Start)
			}
			n++
			c.instructions++
		}
	}
	if n != len(theirs) {
		return fmt.Sprintf("wasm-objdump finds %d instructions more", len(theirs)-n)
	}
	return ""
}

// listings reads what wasm-objdump prints: where instructions begin, by the name
// of the file.
func listings(out []byte) map[string][]int {
	all := map[string][]int{}
	name := ""
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if path, ok := strings.CutSuffix(line, ":\tfile format wasm 0x1"); ok {
			name = filepath.Base(path)
			all[name] = nil
			continue
		}
		place, rest, ok := strings.Cut(line, ": ")
		_, text, listed := strings.Cut(rest, "| ")
		at, err := strconv.ParseUint(strings.TrimSpace(place), 16, 32)
		text = strings.TrimSpace(text)
		if !ok || !listed || err != nil || text == "" || strings.HasPrefix(text, "local[") {
			continue // a heading, locals, or bytes that continue an instruction
		}
		all[name] = append(all[name], int(at))
	}
	return all
}
