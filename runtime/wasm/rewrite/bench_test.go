package rewrite_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/jobhost/jobhost/internal/testing/goguest"
	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/rewrite"
)

// workloads are guests with an export run(n) → sum.
var workloads = []struct {
	name string
	n    uint64
}{
	{name: "fib", n: 30},
	{name: "sort", n: 100_000},
	{name: "sha256", n: 65536},
	{name: "json", n: 20},
}

// workload returns the bytes of a guest; that in Go is built.
func workload(t testing.TB, name string) []byte {
	t.Helper()
	path := filepath.Join("testdata", name+".wasm")
	read := func() ([]byte, error) { return os.ReadFile(path) }
	if name == "json" {
		read = func() ([]byte, error) { return goguest.Build("testdata/src/json", goguest.Worker) }
	}
	b, err := read()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// BenchmarkCost reports how much longer guests run when they are rewritten,
// and with wazero's own way to stop them, as medians of the ratios of
// interleaved runs.
func BenchmarkCost(b *testing.B) {
	for _, w := range workloads {
		b.Run(w.name, func(b *testing.B) {
			plain := workload(b, w.name)
			m, err := module.Read(plain)
			if err != nil {
				b.Fatal(err)
			}
			r, err := rewrite.Rewrite(m, rewrite.Options{KeepData: true})
			if err != nil {
				b.Fatal(err)
			}
			runs := []api.Function{
				entry(b, plain, false), entry(b, r.Module, false), entry(b, plain, true),
			}
			ratios := make([][]float64, len(runs))
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			var total [3]time.Duration
			for b.Loop() {
				var took [3]time.Duration
				var sums [3]uint64
				for i, run := range runs {
					began := time.Now()
					result, err := run.Call(ctx, w.n)
					if err != nil {
						b.Fatal(err)
					}
					took[i], sums[i] = time.Since(began), result[0]
					total[i] += took[i]
					ratios[i] = append(ratios[i], float64(took[i])/float64(took[0]))
				}
				if sums[1] != sums[0] {
					b.Fatalf("the rewritten guest returned %d, the original %d", sums[1], sums[0])
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(total[0].Microseconds())/float64(len(ratios[0])), "plain-µs")
			for i, name := range []string{"", "rewritten", "close-on-done"} {
				if name != "" {
					slices.Sort(ratios[i])
					b.ReportMetric(ratios[i][len(ratios[i])/2], name)
				}
			}
		})
	}
}

func entry(t testing.TB, wasm []byte, closeOnDone bool) api.Function {
	t.Helper()
	ctx := t.Context()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCloseOnContextDone(closeOnDone).WithCoreFeatures(api.CoreFeaturesV2))
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	guest, err := r.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize"))
	if err != nil {
		t.Fatal(err)
	}
	return guest.ExportedFunction("run")
}

// BenchmarkRewrite measures the rewrite itself, with a guest in Go.
func BenchmarkRewrite(b *testing.B) {
	m, err := module.Read(workload(b, "json"))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(m.Bytes)))
	b.ReportAllocs()
	for b.Loop() {
		r, err := rewrite.Rewrite(m, rewrite.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(r.Module))/float64(len(m.Bytes)), "size")
	}
}
