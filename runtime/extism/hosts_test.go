package extism_test

import (
	"strings"
	"testing"

	"github.com/jobhost/jobhost/runtime/extism"
)

func TestHosts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, yes, no string
	}{
		{"a.example", "a.example A.Example", "b.example xa.example a.examplex axexample"},
		{"*.example", "a.example b.a.example .example", "example a.example.org"},
		{"*", "a b.c", ""},
		{"json**.com", "json.com jsonplace.holder.com", "xjson.com"},
		{"?.example", "a.example", ".example ab.example"},
		{"[ab-d].example", "a.example c.example", "e.example -.example"},
		{"[!a].example", "b.example", "a.example"},
		{"{a,b.c}.example", "a.example b.c.example", "c.example {a,b.c}.example"},
		{"{a,{b,c}d}", "a bd cd", "b d"},
		{`\*.example`, "*.example", "a.example"},
		{"a+(b)|c^$", "a+(b)|c^$", "ab c"},
		{"a,b", "a,b", "a b"},
		{`[\^[].x`, `\.x ^.x [.x`, "a.x"},
		{"ü.example", "ü.example Ü.example", "u.example"},
		{"", "", "a"},
	} {
		h, err := extism.NewHosts([]string{"never", tt.pattern})
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		for _, name := range strings.Fields(tt.yes) {
			if !h.Allow(name) {
				t.Errorf("%s does not allow %s", tt.pattern, name)
			}
		}
		for _, name := range strings.Fields(tt.no) {
			if h.Allow(name) {
				t.Errorf("%s allows %s", tt.pattern, name)
			}
		}
	}
	for _, pattern := range []string{"https://a.example", "a.example/x", "a:80", "[", "[]", "[!]", "[z-a]", "{a", "a}", `a\`, strings.Repeat("a", 513)} {
		if _, err := extism.NewHosts([]string{pattern}); err == nil {
			t.Errorf("%s is fine", pattern)
		}
	}
	if h, err := extism.NewHosts(make([]string, 1001)); err == nil {
		t.Errorf("1,001 patterns are fine: %v", h)
	}
	if h, err := extism.NewHosts(nil); err != nil || h.Allow("a") {
		t.Errorf("no patterns: %v", err)
	}
	if (*extism.Hosts)(nil).Allow("a") == false {
		t.Error("nobody's list denies")
	}
}

func FuzzHosts(f *testing.F) {
	f.Add("*.example", "a.example")
	f.Add(`{a,[!b-c]}\**?`, "a*x")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		h, err := extism.NewHosts([]string{pattern})
		if err != nil {
			return
		}
		allowed := h.Allow(name)
		if !strings.ContainsAny(pattern, `*?[]{}\`) && allowed != strings.EqualFold(pattern, name) {
			t.Errorf("%q allows %q: %t", pattern, name, allowed)
		}
	})
}
