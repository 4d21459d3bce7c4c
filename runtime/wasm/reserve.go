package wasm

import (
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/wasm/snapshot"
)

// Reserve opens the files for the images of a plugin, one for each of its modules. A process that is about to lose the
// right to create such files calls it before it loads the plugin.
func (e *Engine) Reserve(src *runtime.Source) error {
	return snapshot.Reserve(1+len(src.Linked), max(wholePages(src.Limits.OrDefaults().MemoryBytes), pageBytes))
}
