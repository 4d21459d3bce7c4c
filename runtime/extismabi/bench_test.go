package extismabi_test

import (
	"testing"

	"github.com/jobhost/jobhost/runtime/extismabi"
)

// BenchmarkJob runs jobs in one instance, with the kernel made new after each:
// those of testdata/probe.c, and of the SDK's plugins where they are.
func BenchmarkJob(b *testing.B) {
	for _, bb := range []struct {
		name, plugin, entry string
		input               int
	}{
		{"noop", "probe", "noop", 0},
		{"vowels_1K", "probe", "vowels", 1 << 10},
		{"vowels_64K", "probe", "vowels", 64 << 10},
		{"echo_64K", "probe", "echo", 64 << 10},
		{"sdk_noop", "noop", "run_test", 0},
		{"sdk_count_vowels_1K", "count_vowels", "count_vowels", 1 << 10},
		{"sdk_count_vowels_64K", "count_vowels", "count_vowels", 64 << 10},
		{"sdk_replace_2K", "replace", "run_test", 2 << 10},
	} {
		b.Run(bb.name, func(b *testing.B) {
			i := open(b, setup{engine: compiler()}, bb.plugin)
			f, at := i.main.ExportedFunction(bb.entry), attempt(words(bb.input))
			b.ReportAllocs()
			for b.Loop() {
				if got, err := i.call(f, at); err != nil || got.Failure != nil {
					b.Fatalf("%+v, %v", got.Failure, err)
				}
				i.plugin.Reset()
			}
		})
	}
}

// BenchmarkNewPlugin is what a kernel adds to making an instance.
func BenchmarkNewPlugin(b *testing.B) {
	e := compiler()
	b.ReportAllocs()
	for b.Loop() {
		p, err := e.kernel.NewPlugin(b.Context(), extismabi.Options{})
		if err != nil {
			b.Fatal(err)
		}
		p.Close(b.Context())
	}
}

// words is n bytes of text.
func words(n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = "hello world "[i%12]
	}
	return string(text)
}

func TestNoAllocations(t *testing.T) {
	i := open(t, setup{}, "probe")
	f, at := i.main.ExportedFunction("noop"), attempt(words(1000))
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := i.call(f, at); err != nil {
			t.Error(err)
		}
		i.plugin.Reset()
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
