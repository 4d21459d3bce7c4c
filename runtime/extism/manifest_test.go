package extism_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/extism"
)

func TestManifest(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := extism.ParseManifest(text)
	if err != nil {
		t.Fatal(err)
	}
	want := extism.Manifest{
		Modules: []extism.Source{
			{Name: "lib", Path: "lib.wasm", SHA256: "aeb1b4b3e3e1bfe6be1d8c8f9ac4b0bdb3b9e5f8aa6d1c4ed1ce76bbe2e7fd21"},
			{Name: "main", Data: []byte("\x00asm\x01\x00\x00\x00")},
		},
		Main:         1,
		MemoryBytes:  100 << 16,
		Limits:       extism.Limits{MemoryBytes: 100 << 16, VarBytes: -1, ResponseBytes: 4096},
		Config:       map[string]string{"key1": "value1", "key2": ""},
		AllowedHosts: []string{"*.example"},
		Mounts:       []extism.Mount{{Host: "data", Guest: "/mnt"}, {Host: "/srv/in", Guest: "/in", ReadOnly: true}},
		Timeout:      100 * time.Millisecond,
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(extism.Limits{}, "Hosts")); diff != "" {
		t.Error(diff)
	}
	if h := got.Limits.Hosts; !h.Allow("a.example") || h.Allow("a.org") {
		t.Error("the hosts are not those of the manifest")
	}
}

// TestSmallManifest: what isn't said is a default; no hosts are allowed then.
func TestSmallManifest(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"wasm": [{"path": "a.wasm"}]}`,
		`{"wasm": [{"path": "a.wasm", "hash": "", "name": ""}], "memory": null, "config": null, "allowed_hosts": null, "allowed_paths": {}, "timeout_ms": null}`,
	} {
		got, err := extism.ParseManifest([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		hosts := got.Limits.Hosts
		got.Limits.Hosts = nil
		if diff := cmp.Diff(extism.Manifest{Modules: []extism.Source{{Path: "a.wasm"}}}, got); diff != "" {
			t.Error(diff)
		}
		if hosts.Allow("a") {
			t.Error("a host is allowed")
		}
	}
}

func TestBadManifests(t *testing.T) {
	t.Parallel()
	a := `{"path": "a.wasm"}`
	for _, tt := range []struct{ name, text, want string }{
		{"empty", ``, "is no Extism manifest: line 1, column 1: unexpected EOF"},
		{"no object", `[]`, "is no Extism manifest: line 1, column 1: an array does not belong there"},
		{"unknown", `{"wasm": [` + a + `],` + "\n" + ` "allowed_host": []}`, "is no Extism manifest: line 2, column 2: /allowed_host: unknown object member name"},
		{"case", `{"Wasm": []}`, "is no Extism manifest: line 1, column 2: /Wasm: unknown object member name"},
		{"doubled", `{"wasm": [], "wasm": [` + a + `]}`, `is no Extism manifest: line 1, column 14: duplicate object member name`},
		{"trailing", `{"wasm": [` + a + `]} {}`, `is no Extism manifest: line 1, column 32: invalid character '{' after top-level value`},
		{"type", `{"wasm": [{"path": 7}]}`, "is no Extism manifest: line 1, column 20: /wasm/0/path: a number does not belong there"},
		{"no base64", `{"wasm": [{"data": "%"}]}`, "is no Extism manifest: line 1, column 20: /wasm/0/data: illegal base64 data at input byte 0"},
		{"no modules", `{"wasm": []}`, "wasm: has 0 modules; a plugin has 1 to 64"},
		{"no source", `{"wasm": [{"name": "main"}]}`, "wasm[0]: needs either a path or data, in base64"},
		{"two sources", `{"wasm": [{"path": "a", "data": "AGFzbQ=="}]}`, "wasm[0]: needs either a path or data, in base64"},
		{"url", `{"wasm": [{"url": "https://a.example/a.wasm", "method": "GET", "headers": {"a": "b"}}]}`, "wasm[0].url: this host doesn't download plugins"},
		{"hash", `{"wasm": [{"path": "a", "hash": "------"}]}`, "wasm[0].hash: is not the 64 hex digits of a SHA-256 sum"},
		{"unnamed", `{"wasm": [{"path": "a"}, {"path": "b", "name": "main"}]}`, "wasm: has a module without a name, number 1"},
		{"which is main", `{"wasm": [{"path": "a"}, {"path": "b"}]}`, "wasm: has a module without a name, number 1"},
		{"doubled name", `{"wasm": [{"path": "a", "name": "x"}, {"path": "b", "name": "x"}, {"path": "c"}]}`, "wasm: has two modules named x"},
		{"two mains", `{"wasm": [{"path": "a", "name": "main"}, {"path": "b", "name": "main"}]}`, "wasm: has two modules named main"},
		{"host's name", `{"wasm": [{"path": "a", "name": "extism:host/env"}, {"path": "b"}]}`, "wasm: has a module named extism:host/env, which is a name of the host's"},
		{
			"numbers", `{"wasm": [` + a + `], "memory": {"max_pages": 65536, "max_var_bytes": -1, "max_http_response_bytes": -2}, "timeout_ms": 0}`,
			"memory.max_pages: 65536 is not 1 to 65535\nmemory.max_http_response_bytes: -2 is negative\nmemory.max_var_bytes: -1 is negative\ntimeout_ms: 0 is not a time in milliseconds",
		},
		{"config", `{"wasm": [` + a + `], "config": {"k": null}}`, "config.k: null is not a value"},
		{"hosts", `{"wasm": [` + a + `], "allowed_hosts": ["https://a"]}`, `allowed_hosts: "https://a" is not a pattern for the name of a host: leave out scheme, port and path`},
		{
			"paths", `{"wasm": [` + a + `], "allowed_paths": {"ro:": "/a", "b": "rel", "c": "/c", "d": "/c"}}`,
			"allowed_paths.b: \"rel\" is not an absolute path for the guest\nallowed_paths.d: \"/c\" is another's place already\nallowed_paths.ro:: is no path",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := extism.ParseManifest([]byte(tt.text))
			if err == nil || err.Error() != tt.want || jobhost.CodeOf(err) != jobhost.CodeInvalid {
				t.Errorf("%v\nwant %s", err, tt.want)
			}
		})
	}
}

func FuzzManifest(f *testing.F) {
	f.Add(`{"wasm": [{"path": "a.wasm", "name": "main", "hash": ""}], "memory": {"max_pages": 1}}`)
	f.Add(`{"wasm": [{"data": "AGFzbQEAAAA="}], "config": {"a": "b"}, "allowed_hosts": ["{a,[b]}*?"], "allowed_paths": {"ro:a": "/b"}, "timeout_ms": 1}`)
	f.Add(`{"wasm": [{"url": "x"}], "allowed_hosts": ["\\"]}`)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := extism.ParseManifest([]byte(text))
		if err != nil {
			if jobhost.CodeOf(err) != jobhost.CodeInvalid {
				t.Errorf("%v", err)
			}
			return
		}
		for n, s := range m.Modules {
			if (s.Path == "") == (len(s.Data) == 0) || len(s.SHA256)%64 != 0 {
				t.Errorf("module %d: %+v", n, s)
			}
		}
		if m.Main >= len(m.Modules) || m.MemoryBytes < 0 || m.Timeout < 0 || m.Limits.Hosts == nil {
			t.Errorf("%+v", m)
		}
		m.Limits.Hosts.Allow("a.example")
	})
}

func ExampleParseManifest() {
	m, err := extism.ParseManifest([]byte(`{
		"wasm": [{"path": "count_vowels.wasm"}],
		"memory": {"max_pages": 16},
		"config": {"vowels": "aeiouAEIOU"},
		"allowed_paths": {"ro:dictionaries": "/dict"},
		"timeout_ms": 500
	}`))
	fmt.Println(m.Modules[m.Main].Path, m.MemoryBytes, m.Config["vowels"], m.Mounts, m.Timeout, err)
	// Output: count_vowels.wasm 1048576 aeiouAEIOU [{dictionaries /dict true}] 500ms <nil>
}
