package extismabi_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/extismabi"
	"github.com/jobhost/jobhost/runtime/module"
)

// modules reads "name<needed,needed name".
func modules(text string) []extismabi.Linked {
	var all []extismabi.Linked
	for _, field := range strings.Split(text, " ") {
		name, needs, _ := strings.Cut(field, "<")
		m := extismabi.Linked{Name: name, Imports: []module.Import{{Module: extismabi.Module, Name: "alloc"}}}
		for need := range strings.SplitSeq(needs, ",") {
			m.Imports = append(m.Imports, module.Import{Module: need, Name: "f"})
		}
		all = append(all, m)
	}
	return all
}

func TestOrder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		modules string
		want    []int
		err     string
	}{
		{modules: "", want: []int{0}},
		{modules: "anything", want: []int{0}},
		{modules: "main<a a", want: []int{1, 0}},
		{modules: "a<b b main<a", want: []int{1, 0, 2}},
		{modules: "a<b,c b<c c last<a,b", want: []int{2, 1, 0, 3}},
		{modules: "unused <none", want: []int{0, 1}},
		{modules: "a<main main<a", want: []int{0, 1}}, // Check refuses it
		{modules: "a<b b<c c<a main<a", err: "a → b → c → a"},
		{modules: "x<a a<b b<a main", err: "a → b → a"},
		{modules: "a<a main", err: "a → a"},
		{modules: "a a main", err: "two modules named a"},
		{modules: "a  main", err: "without a name, number 2"},
		{modules: "wasi_snapshot_preview1 main", err: "a name of the host's"},
		{modules: strings.Repeat("m ", 64), err: "65 modules"},
	} {
		got, err := extismabi.Order(modules(tt.modules))
		if tt.err == "" && (err != nil || !slices.Equal(got, tt.want)) {
			t.Errorf("%s: %v, %v", tt.modules, got, err)
		}
		if tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || jobhost.CodeOf(err) != jobhost.CodeInvalid) {
			t.Errorf("%s: %v", tt.modules, err)
		}
	}
}

// TestOrderOfAny: each module comes once, after those it needs.
func TestOrderOfAny(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "modules")
		all := make([]extismabi.Linked, n)
		names := rapid.Permutation(slices.Sorted(strings.SplitSeq("a b c d e f g h i j k l m n o p q r s t", " "))).Draw(t, "names")
		for i := range all {
			all[i].Name = names[i]
			for range rapid.IntRange(0, 3).Draw(t, "imports") {
				// Of modules that are alphabetically earlier, so that there is no circle.
				if need := rapid.SampledFrom(names).Draw(t, "import"); need < names[i] {
					all[i].Imports = append(all[i].Imports, module.Import{Module: need})
				}
			}
		}
		order, err := extismabi.Order(all)
		if err != nil || len(order) != n || order[n-1] != n-1 {
			t.Fatalf("%v, %v", order, err)
		}
		for at, m := range order {
			for _, i := range all[m].Imports {
				need := slices.IndexFunc(all, func(l extismabi.Linked) bool { return l.Name == i.Module })
				if need >= 0 && need != n-1 && slices.Index(order, need) >= at {
					t.Fatalf("%v: %s comes before %s", order, names[m], i.Module)
				}
			}
		}
	})
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		i      module.Import
		linked string
		want   string
		hint   string
	}{
		{name: "kernel", i: module.Import{Module: extismabi.Module, Name: "alloc"}},
		{name: "WASI", i: module.Import{Module: "wasi_snapshot_preview1", Name: "fd_write"}},
		{name: "linked", i: module.Import{Module: "lib", Name: "f"}, linked: "lib"},
		{name: "host's function by a linked module", i: module.Import{Module: "extism:host/user", Name: "f"}, linked: "extism:host/user"},
		{
			name: "unknown", i: module.Import{Module: extismabi.Module, Name: "store_u16"},
			want: "imports extism:host/env.store_u16, which this host doesn't offer", hint: "version 1.7",
		},
		{
			name: "memory of the kernel", i: module.Import{Module: extismabi.Module, Name: "memory", Kind: module.KindMemory},
			want: "imports extism:host/env.memory, a memory", hint: "share functions only",
		},
		{
			name: "memory of a module", i: module.Import{Module: "lib", Name: "memory", Kind: module.KindMemory}, linked: "lib",
			want: "imports lib.memory, a memory", hint: "share functions only",
		},
		{
			name: "behind the kernel", i: module.Import{Module: "jobhost:extism", Name: "take"},
			want: "imports jobhost:extism.take, which neither this host nor a linked module offers", hint: "link a module named jobhost:extism",
		},
		{
			name: "user", i: module.Import{Module: "extism:host/user", Name: "kv\x1b"},
			want: `imports extism:host/user.kv\x1b, a function of its own host`, hint: `link a module named extism:host/user that exports kv\x1b`,
		},
		{
			name: "component", i: module.Import{Module: "wasi:io/streams@0.2.0", Name: "read"},
			want: "imports wasi:io/streams@0.2.0.read, but this host has no module wasi:io/streams@0.2.0", hint: "wasip1",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := extismabi.Check([]module.Import{tt.i}, strings.Fields(tt.linked))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || err.Error() != tt.want) {
				t.Errorf("%v", err)
			}
			if hint := jobhost.HintOf(err); !strings.Contains(hint, tt.hint) {
				t.Errorf("hint %s", hint)
			}
		})
	}
}
