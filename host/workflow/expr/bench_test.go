package expr

import (
	"fmt"
	"testing"
)

func BenchmarkCompile(b *testing.B) {
	env := setup(b)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		source := fmt.Sprintf(`steps.fetch.output.status >= 200 && input.size > %d`, i)
		if _, err := env.Compile(source, Place{Kind: When, Above: above}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCondition(b *testing.B) {
	p := compile(b, `steps.fetch.output.status >= 200 && input.size > 2`, Place{Kind: When})
	d := data()
	b.ReportAllocs()
	for b.Loop() {
		if ok, err := p.Bool(b.Context(), d); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}
