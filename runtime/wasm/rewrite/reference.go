package rewrite

import "github.com/jobhost/jobhost/runtime/module"

// wazero 1.12 creates a new reference each time ref.func runs, on Go's heap, and
// keeps it for as long as the instance exists: a loop of it took gigabytes
// within a job. So for each function that code makes references to, one is
// created in a global when the module is instantiated, and ref.func reads that.

// refer adds the globals, which come last.
func (w *writer) refer() {
	w.referred = map[uint32]uint32{}
	next := w.added.stop + 1
	for _, r := range w.references {
		if _, has := w.referred[r.to]; has {
			continue
		}
		w.referred[r.to] = next
		next++
		w.out.Globals = append(w.out.Globals, module.Global{
			GlobalType: module.GlobalType{Type: module.FuncRef}, Init: module.Const{Op: byte(module.RefFunc), Bits: uint64(r.to)},
		})
	}
}

// reference writes a ref.func.
func (f *functionWriter) reference(in *module.Instruction) {
	f.code.getGlobal(f.referred[uint32(in.Immediate)])
}
