package hostcall_test

import (
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

func TestParseMetric(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"requests":              "requests",
		"_r2D2":                 "_r2D2",
		"requests{}":            "requests",
		`r{b="2",a="1"}`:        `r{a="1",b="2"}`,
		`r{a="q\"b\\n\n,}{="}`:  `r{a="q\"b\\n\n,}{="}`,
		"r{a=\"line\nbreak\"}":  `r{a="line\nbreak"}`,
		`r{a=""}`:               `r{a=""}`,
		`r{a="日本"}`:             `r{a="日本"}`,
		strings.Repeat("n", 64): strings.Repeat("n", 64),
	} {
		m, err := hostcall.ParseMetric(text)
		if err != nil || m.String() != want {
			t.Errorf("%s: %s, %v", text, m, err)
		}
	}
	eight := `a="",b="",c="",d="",e="",f="",g="",h=""`
	if _, err := hostcall.ParseMetric("r{" + eight + "}"); err != nil {
		t.Error(err)
	}
	for _, text := range []string{
		"", "1a", "a b", "a:b", "é", "{}", strings.Repeat("n", 65),
		"r{", "r}", "r{}x", "r{a}", "r{a=}", `r{a="}`, `r{a="1"`, `r{a="1",}`, `r{,a="1"}`, `r{a="1"b="2"}`, `r{a="1"} `,
		`r{a="1",a="2"}`, `r{__a="1"}`, `r{worker="1"}`, `r{le="1"}`, `r{quantile="1"}`, `r{1a="1"}`, `r{ a="1"}`,
		`r{a="\x"}`, `r{a="\`, "r{a=\"\xff\"}", `r{a="` + strings.Repeat("v", 129) + `"}`,
		"r{" + eight + `,i=""}`, strings.Repeat("n", hostcall.MaxMetricBytes+1),
	} {
		if m, err := hostcall.ParseMetric(text); jobhost.CodeOf(err) != jobhost.CodeInvalid || jobhost.HintOf(err) == "" {
			t.Errorf("%.100q: %+v, %v", text, m, err)
		}
	}
}

func FuzzParseMetric(f *testing.F) {
	f.Add(`requests{code="200",path="a \"b\" \\ c\n"}`)
	f.Add("r{}")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := hostcall.ParseMetric(text)
		if err != nil {
			return
		}
		again, err := hostcall.ParseMetric(m.String())
		if err != nil || again.String() != m.String() {
			t.Errorf("%q became %q and then %q: %v", text, m, again, err)
		}
	})
}
