package extism

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

// Manifest is the content of an Extism manifest, as settings of a worker. Zero
// values mean that it doesn't set them.
type Manifest struct {
	Modules []Source
	// Main is the index of the main module.
	Main int
	// MemoryBytes bounds the memory of each module, and of the kernel.
	MemoryBytes int64
	// Limits has the manifest's limits on vars, responses and hosts, and MemoryBytes.
	Limits Limits
	Config map[string]string
	// AllowedHosts are the patterns in Limits.Hosts, as written.
	AllowedHosts []string
	Mounts       []Mount
	Timeout      time.Duration
}

// Source says where a module comes from: a file or the manifest itself.
type Source struct {
	Name string // by which others import it
	Path string // relative to the manifest; empty = Data has the module
	Data []byte
	// SHA256 is the expected digest of the bytes, in lower-case hex; empty = any.
	SHA256 string
}

// Mount is a folder that the guests see.
type Mount struct {
	Host, Guest string
	ReadOnly    bool
}

// manifest is the JSON form.
type manifest struct {
	Wasm   []wasmFile `json:"wasm"`
	Memory struct {
		MaxPages     *int64 `json:"max_pages"`
		MaxResponse  *int64 `json:"max_http_response_bytes"`
		MaxVariables *int64 `json:"max_var_bytes"`
	} `json:"memory"`
	Config       map[string]*string `json:"config"`
	AllowedHosts []string           `json:"allowed_hosts"`
	AllowedPaths map[string]string  `json:"allowed_paths"`
	Timeout      *int64             `json:"timeout_ms"`
}

type wasmFile struct {
	Path    *string        `json:"path"`
	Data    []byte         `json:"data"`
	URL     *string        `json:"url"`
	Name    string         `json:"name"`
	Hash    string         `json:"hash"`
	Headers jsontext.Value `json:"headers"` // of a url
	Method  *string        `json:"method"`  // of a url
}

// ParseManifest parses an Extism manifest. It is stricter than Extism's own
// SDKs, which ignore what they don't know, take the last of duplicate names and
// match names case-insensitively: all of these are errors. All faults of the
// content are reported at once; the error has code invalid.
func ParseManifest(text []byte) (Manifest, error) {
	var m manifest
	// By default matching is case-sensitive, and duplicates and invalid UTF-8 are rejected.
	if err := json.Unmarshal(text, &m, json.RejectUnknownMembers(true)); err != nil {
		return Manifest{}, jobhost.Invalid("", "", "is no Extism manifest: %s", explain(text, err))
	}
	r := reading{out: Manifest{AllowedHosts: m.AllowedHosts}}
	r.modules(m.Wasm)
	r.memory(&m)
	r.config(m.Config)
	r.hosts(m.AllowedHosts)
	r.mounts(m.AllowedPaths)
	if m.Timeout != nil {
		r.timeout(*m.Timeout)
	}
	if len(r.faults) > 0 {
		return Manifest{}, errors.Join(r.faults...)
	}
	return r.out, nil
}

// explain says where a manifest is wrong, and why.
func explain(manifest []byte, err error) string {
	offset, reason := int64(-1), err
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		offset, reason = e.ByteOffset, e.Err
	} else if e, ok := errors.AsType[*json.SemanticError](err); ok {
		offset = e.ByteOffset
		if e.Err != nil {
			reason = e.Err
		} else {
			reason = fmt.Errorf("%s does not belong there", kindNames[e.JSONKind])
		}
		if e.JSONPointer != "" {
			reason = fmt.Errorf("%s: %w", e.JSONPointer, reason)
		}
	}
	if offset < 0 || offset > int64(len(manifest)) {
		return text.Line(reason.Error(), 300)
	}
	before := manifest[:offset]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("line %d, column %d: %s", line, column, text.Line(reason.Error(), 300))
}

var kindNames = map[jsontext.Kind]string{
	jsontext.KindBeginArray: "an array", jsontext.KindBeginObject: "an object", jsontext.KindString: "a string",
	jsontext.KindNumber: "a number", jsontext.KindTrue: "true", jsontext.KindFalse: "false", jsontext.KindNull: "null",
}

// reading turns a manifest into settings and collects its faults.
type reading struct {
	out    Manifest
	faults []error
}

func (r *reading) fault(field, hint, format string, args ...any) {
	r.faults = append(r.faults, &jobhost.Error{
		Code: jobhost.CodeInvalid, Field: field, Hint: hint, Message: field + ": " + fmt.Sprintf(format, args...),
	})
}

func (r *reading) modules(modules []wasmFile) {
	names := make([]string, len(modules))
	for n, m := range modules {
		names[n] = m.Name
		r.module(fmt.Sprintf("wasm[%d]", n), m)
	}
	main, err := MainModule(names)
	if err == nil && names[main] != Main && names[0] == "" && len(names) > 1 {
		// Extism's documentation says the last, its Go SDK takes the first one without a name.
		err = jobhost.Invalid("", `name the main module "main"`, "does not say which module is the main one")
	}
	if e, ok := errors.AsType[*jobhost.Error](err); ok {
		r.fault("wasm", e.Hint, "%s", e.Message)
	}
	r.out.Main = main
}

func (r *reading) module(field string, m wasmFile) {
	source := Source{Name: m.Name, Data: m.Data, SHA256: strings.ToLower(m.Hash)}
	if m.Path != nil {
		source.Path = *m.Path
	}
	switch {
	case m.URL != nil || m.Headers != nil || m.Method != nil:
		r.fault(field+".url", "download it, and give its path and hash", "this host doesn't download plugins")
	case (source.Path == "") == (len(m.Data) == 0):
		r.fault(field, "give one of the two", "needs either a path or data, in base64")
	case strings.ContainsRune(source.Path, 0):
		r.fault(field+".path", "", "a path has no zero byte")
	}
	if sum, err := hex.DecodeString(source.SHA256); source.SHA256 != "" && (err != nil || len(sum) != 32) {
		r.fault(field+".hash", "see sha256sum", "is not the 64 hex digits of a SHA-256 sum")
	}
	r.out.Modules = append(r.out.Modules, source)
}

func (r *reading) memory(m *manifest) {
	if pages := m.Memory.MaxPages; pages != nil {
		if *pages < 1 || *pages > 65535 {
			r.fault("memory.max_pages", "a page has 64 KiB", "%d is not 1 to 65535", *pages)
		}
		r.out.MemoryBytes = *pages * pageBytes
		r.out.Limits.MemoryBytes = r.out.MemoryBytes
	}
	r.out.Limits.ResponseBytes = r.bytes("memory.max_http_response_bytes", m.Memory.MaxResponse)
	r.out.Limits.VarBytes = r.bytes("memory.max_var_bytes", m.Memory.MaxVariables)
}

// bytes returns a size in the form of Limits: 0 = not given, −1 = nothing.
func (r *reading) bytes(field string, n *int64) int64 {
	switch {
	case n == nil:
		return 0
	case *n < 0:
		r.fault(field, "leave it out for the default", "%d is negative", *n)
		return 0
	case *n == 0:
		return -1
	}
	return *n
}

func (r *reading) config(config map[string]*string) {
	for _, name := range slices.Sorted(maps.Keys(config)) {
		value := config[name]
		if value == nil {
			r.fault("config."+text.Line(name, 100), "leave it out", "null is not a value")
			continue
		}
		if r.out.Config == nil {
			r.out.Config = make(map[string]string, len(config))
		}
		r.out.Config[name] = *value
	}
}

func (r *reading) hosts(patterns []string) {
	hosts, err := NewHosts(patterns)
	if err != nil {
		r.fault("allowed_hosts", "", "%v", err)
	}
	r.out.Limits.Hosts = hosts
}

// mounts reads allowed_paths: folders on the host, with the prefix ro:
// read-only, and where guests see them.
func (r *reading) mounts(paths map[string]string) {
	seen := map[string]bool{}
	for _, host := range slices.Sorted(maps.Keys(paths)) {
		m := Mount{Guest: paths[host]}
		m.Host, m.ReadOnly = strings.CutPrefix(host, "ro:")
		field := "allowed_paths." + text.Line(host, 100)
		switch {
		case m.Host == "" || strings.ContainsRune(m.Host, 0):
			r.fault(field, "", "is no path")
		case !strings.HasPrefix(m.Guest, "/") || strings.ContainsRune(m.Guest, 0):
			r.fault(field, "write /data, say", "%q is not an absolute path for the guest", text.Line(m.Guest, 100))
		case seen[m.Guest]:
			r.fault(field, "mount each at a place of its own", "%q is another's place already", text.Line(m.Guest, 100))
		}
		seen[m.Guest] = true
		r.out.Mounts = append(r.out.Mounts, m)
	}
}

func (r *reading) timeout(ms int64) {
	if ms < 1 || ms > math.MaxInt64/int64(time.Millisecond) {
		r.fault("timeout_ms", "leave it out for the worker's default", "%d is not a time in milliseconds", ms)
		return
	}
	r.out.Timeout = time.Duration(ms) * time.Millisecond
}
