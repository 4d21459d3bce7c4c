// Package extism reads Extism manifests: JSON that names the modules of a plugin and limits
// what they may do. Running a plugin is the task of package extismabi.
package extism

import (
	"slices"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

// Limits limit one plugin. Zero values mean the defaults of Extism.
type Limits struct {
	// MemoryBytes bounds the kernel's memory, excluding the guest's; 0 = 64 MiB.
	MemoryBytes int64
	// VarBytes bounds all vars, including names; 0 = [DefaultVarBytes], negative = there are none.
	VarBytes int64
	// ResponseBytes bounds the body of an HTTP response, below what the host
	// allows anyway; 0 = 50 MiB, negative = no body at all.
	ResponseBytes int64
	// Hosts narrows what the host allows: see [Hosts]. nil = the host alone decides.
	Hosts *Hosts
}

// DefaultVarBytes bounds the size of all vars together; as in Extism, the bound
// itself is already too much.
const DefaultVarBytes = 1 << 20

const pageBytes = 64 << 10

// Module is the name of the module that the host offers to plugins.
const Module = "extism:host/env"

// wasiModule is the other module that it offers.
const wasiModule = "wasi_snapshot_preview1"

// Main is the name of the module whose exports are the entries.
const Main = "main"

// maxModules bounds the modules of a plugin.
const maxModules = 64

// MainModule returns the index of a plugin's main module: the one named main,
// or else the last. All others need unique names.
func MainModule(names []string) (int, error) {
	if n := len(names); n == 0 || n > maxModules {
		return 0, jobhost.Invalid("", "", "has %d modules; a plugin has 1 to %d", n, maxModules)
	}
	main := slices.Index(names, Main)
	if main < 0 {
		main = len(names) - 1
	}
	for n, name := range names {
		switch {
		case n == main:
		case name == "":
			return 0, jobhost.Invalid("", `give it the name that others import it by; the main module is named "main", or is the last`,
				"has a module without a name, number %d", n+1)
		case name == Module || name == wasiModule:
			return 0, jobhost.Invalid("", "rename it", "has a module named %s, which is a name of the host's", name)
		case slices.Index(names, name) != n:
			return 0, jobhost.Invalid("", "rename one of them", "has two modules named %s", text.Line(name, 100))
		}
	}
	return main, nil
}
