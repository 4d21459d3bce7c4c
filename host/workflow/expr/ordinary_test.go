package expr

import "testing"

// TestOrdinaryExpressionsAreNotTooMuch: expressions whose cost CEL alone would consider unbounded.
func TestOrdinaryExpressionsAreNotTooMuch(t *testing.T) {
	t.Parallel()
	env, err := New(nil, []Step{{Name: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{
		"input.a[1] + input.b",
		"steps.a.output.a[1] + input.n",
		"input.a['x'][0] + input.b + input.c",
		"string(input.a[1]) + 'x'",
		"input.l[0].map(x, x[0] + input.b)",
		"input.a[?0].orValue('x') + input.b",
		"input.?a.orValue('x') + input.b",
		"input.?a.value() + input.b",
		"input.l.filter(x, x.k)[0].name + input.b",
		"input.l.map(x, x.a)[0] + workflow.labels.x",
	} {
		if _, err := env.Compile(source, Place{Kind: Input, Step: "b", Above: func(string) bool { return true }}); err != nil {
			t.Errorf("%s: %v", source, err)
		}
	}
}
