package expr

import (
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
)

// TestHostileTextIsRefusedQuickly compiles what costs parsers most.
func TestHostileTextIsRefusedQuickly(t *testing.T) {
	t.Parallel()
	fill := func(s string) string { return strings.Repeat(s, (jobhost.MaxExpressionSize-16)/len(s)) }
	tests := map[string]string{
		"parentheses": fill("("), "brackets": fill("["), "braces": fill("{"), "not": fill("!") + "true", "minus": fill("-") + "1",
		"conditional": fill("true?") + "1", "choices": fill("true?1:") + "1", "or": fill("true||") + "true", "plus": fill("1+") + "1", "fields": "input" + fill(".a")[5:],
		"indexes": "input.free" + fill("[0]")[10:], "calls": fill("size("), "quotes": fill(`"`), "strange": fill("\x00\u202e"),
		"macros": fill("[1].map(x,") + "1", "closed macros": strings.Repeat("[1,2].all(x,", 12) + "true" + strings.Repeat(")", 12),
		"wide": "[" + fill("1,")[2:] + "1]", "optional": "input" + fill(".?a")[9:], "long name": fill("a"),
		"pattern": `input.name.matches("` + strings.Repeat("(a{9}){9}", 40) + `")`,
	}
	for name, source := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			p, err := setup(t).Compile(source, Place{Kind: Output})
			if err == nil {
				_, _ = p.JSON(t.Context(), data())
			} else if len(err.Error()) > 4000 {
				t.Errorf("the error is %d bytes long", len(err.Error()))
			}
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("it took %v", took)
			} else {
				t.Logf("%v, %.100v", took, err)
			}
		})
	}
}
