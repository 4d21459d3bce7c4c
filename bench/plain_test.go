package bench

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// BenchmarkPlainInstance is the cost of a fresh instance without our code:
// plain wazero makes it from the compiled module and initialises it. It runs no
// job, since its imports exist in name only.
func BenchmarkPlainInstance(b *testing.B) {
	for _, guest := range sandboxGuests {
		b.Run(guest.name, func(b *testing.B) {
			ctx := b.Context()
			r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler())
			b.Cleanup(func() { _ = r.Close(context.Background()) })
			wasi_snapshot_preview1.MustInstantiate(ctx, r)
			module, err := sandboxModule(guest.file)
			if err != nil {
				b.Fatal(err)
			}
			compiled, err := r.CompileModule(ctx, module)
			if err != nil {
				b.Fatal(err)
			}
			host := r.NewHostModuleBuilder("jobhost1")
			for _, f := range compiled.ImportedFunctions() {
				if from, name, _ := f.Import(); from == "jobhost1" {
					nothing := api.GoModuleFunc(func(context.Context, api.Module, []uint64) {})
					host.NewFunctionBuilder().WithGoModuleFunction(nothing, f.ParamTypes(), f.ResultTypes()).Export(name)
				}
			}
			if _, err := host.Instantiate(ctx); err != nil {
				b.Fatal(err)
			}
			config := wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize")
			b.ReportAllocs()
			for b.Loop() {
				i, err := r.InstantiateModule(ctx, compiled, config)
				if err != nil {
					b.Fatal(err)
				}
				_ = i.Close(ctx)
			}
		})
	}
}
