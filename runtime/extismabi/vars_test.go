package extismabi_test

import (
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/extism"
	"github.com/jobhost/jobhost/runtime/extismabi"
)

// TestVarsOfAPlugin: without a KV, vars are there for the attempt, or as long
// as the plugin where they are kept.
func TestVarsOfAPlugin(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{false, true} {
		i := open(t, setup{options: extismabi.Options{KeepVars: keep}}, "probe")
		for _, step := range []struct{ input, want string }{
			{"a=1", ""}, {"b=two", ""}, {"a=3", "1"}, {"a", "3"}, {"a", ""}, {"b=", "two"}, {"b", ""}, {"=no name", ""}, {"", "no name"},
		} {
			if !keep {
				step.want = ""
			}
			if got := i.must(t, "var", attempt(step.input)); got != step.want {
				t.Errorf("kept %t, %s: %q, want %q", keep, step.input, got, step.want)
			}
		}
	}
}

// TestVarsAreBounded: a var counts 40 bytes besides its name and value.
func TestVarsAreBounded(t *testing.T) {
	t.Parallel()
	i := open(t, setup{options: extismabi.Options{Limits: extism.Limits{VarBytes: 200}, KeepVars: true}}, "probe")
	full := func(input string) {
		t.Helper()
		trap := i.trapOf(t, "var", attempt(input))
		if trap.Error() != "extism:host/env.var_set: the variable store is full" || trap.Category != jobhost.CategoryResource {
			t.Errorf("%+v", trap)
		}
	}
	full("a=" + strings.Repeat("v", 159)) // 200 is too much
	i.must(t, "var", attempt("a="+strings.Repeat("v", 158)))
	i.must(t, "var", attempt("a="+strings.Repeat("w", 158))) // in its place
	full("b=1")
	i.must(t, "var", attempt("a=short"))
	i.must(t, "var", attempt("b=1"))
	i.must(t, "var", attempt("a"))
	if got := i.must(t, "var", attempt("b")); got != "1" {
		t.Errorf("b = %q", got)
	}
	i.must(t, "var", attempt("a="+strings.Repeat("v", 158)))

	i = open(t, setup{}, "probe")
	i.must(t, "var", attempt("a="+strings.Repeat("v", 1<<20-42)))
	full("a=" + strings.Repeat("v", 1<<20-41))
}

// TestVarsInKV: with a KV, vars are the worker's.
func TestVarsInKV(t *testing.T) {
	t.Parallel()
	s := &services{kv: map[string]string{"was": "there"}}
	run := func(i *instance, input string) (string, *extismabi.Trap) {
		at := attempt(input)
		at.Services = s
		if _, _, set := strings.Cut(input, "!"); set {
			return "", i.trapOf(t, "var", at)
		}
		return i.must(t, "var", at), nil
	}
	i := open(t, setup{}, "probe")
	if got, _ := run(i, "was=changed"); got != "there" || s.kv["was"] != "changed" {
		t.Errorf("%q, %q", got, s.kv)
	}
	if got, _ := run(i, "was"); got != "changed" || len(s.kv) != 0 {
		t.Errorf("%q, %q", got, s.kv)
	}
	run(open(t, setup{options: extismabi.Options{KeepVars: true}}, "probe"), "mine=x")
	if len(s.kv) != 0 {
		t.Errorf("%q", s.kv)
	}
	for input, want := range map[string]string{
		"huge=!" + strings.Repeat("v", 1<<20): "var_set: the variable store is full",
		"set full=!":                          "var_set: the variable store is full",
		"set denied=!":                        "var_set: this worker may not use variables",
		"bad=!":                               "var_get: the name can't be that of a variable",
		"broken=!":                            "var_get: the variable store does not answer: errno -6",
	} {
		if _, trap := run(i, input); trap.Error() != "extism:host/env."+want {
			t.Errorf("%.20s: %v", input, trap)
		}
	}
}
