package manifest

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
	"github.com/jobhost/jobhost/runtime"
)

// worker reads a section [worker.NAME].
func (r *reader) worker(name string, table map[string]any) Worker {
	path := []string{"worker", name}
	w := defaultWorker(name, r.cpus)
	if err := jobhost.CheckWorker(name); err != nil {
		r.faultKey(path, nil, err.Error(), jobhost.HintOf(err))
	} else if strings.HasPrefix(name, jobhost.ReservedWorkers) {
		r.faultKey(path, nil, "names that begin with "+jobhost.ReservedWorkers+" are the host's own", "use another name")
	}
	before := len(r.faults)
	fill(r, path, table, workerFields(), &w, "retry", "retention", "breaker", "config", "env", "secrets", "http")
	if len(r.faults) == before {
		r.checkPlugin(path, &w)
	}
	r.limits(path, table, &w.Limits)
	r.native(path, table, &w)
	if retry, ok := r.table(table, path, "retry"); ok {
		r.retry(append(path, "retry"), retry, &w.Retry)
	}
	if retention, ok := r.table(table, path, "retention"); ok {
		fill(r, append(path, "retention"), retention, retentionFields(), w.Retention)
	}
	if breaker, ok := r.table(table, path, "breaker"); ok {
		w.Breaker = jobhost.DefaultBreaker(name)
		fill(r, append(path, "breaker"), breaker, breakerFields(), &w.Breaker)
	}
	if config, ok := r.table(table, path, "config"); ok {
		w.Config = r.config(append(path, "config"), config)
	}
	if env, ok := r.table(table, path, "env"); ok {
		w.Env = r.env(append(path, "env"), env, w.ABI == runtime.ABIProcess)
	}
	if secrets, ok := r.table(table, path, "secrets"); ok {
		w.Secrets = r.secrets(append(path, "secrets"), secrets)
	}
	if http, ok := r.table(table, path, "http"); ok {
		w.HTTP = r.http(append(path, "http"), http)
		w.Limits.OpenRequests, w.Limits.Requests, w.Limits.RequestBytes = w.HTTP.OpenRequests, w.HTTP.Requests, w.HTTP.RequestBytes
	}
	return w
}

// limits settles what the limits have to do with each other.
func (r *reader) limits(path []string, table map[string]any, l *runtime.Limits) {
	const page = 64 << 10 // of WebAssembly
	l.MemoryBytes = (l.MemoryBytes + page - 1) / page * page
	if _, given := table["log_line"]; !given {
		l.LineBytes = min(l.LineBytes, l.LogBytes)
	} else if l.LineBytes > l.LogBytes {
		r.faultValue(append(path, "log_line"), wrong("", "a line of %v does not fit into a log of %v",
			Size(l.LineBytes), Size(l.LogBytes)))
	}
}

// native settles what is other with native plugins.
func (r *reader) native(path []string, table map[string]any, w *Worker) {
	if w.ABI != runtime.ABIProcess {
		return
	}
	if _, given := table["memory"]; !given {
		w.Limits.MemoryBytes = NativeMemory
	}
	for _, wrong := range []struct {
		key string
		is  bool
	}{
		{"sandbox", w.Sandbox == runtime.SandboxInline},
		{"isolation", table["isolation"] != nil && w.Isolation != runtime.IsolateInstance},
		{"fuel", w.Limits.Fuel != 0},
		{"mounts", len(w.System.Mounts) > 0},
		{"features", len(w.Features) > 0},
		{"compile_memory", w.Limits.CompileBytes != runtime.DefaultLimits().CompileBytes},
		{"job_env", w.System.BareEnv},
	} {
		if wrong.is {
			r.faultKey(append(path, wrong.key), path, "a native plugin has no sandbox, so "+wrong.key+" can't hold", "leave it out")
		}
	}
	w.Sandbox, w.Isolation = runtime.SandboxProcess, runtime.IsolateInstance
	if w.SHA256 == "" && (!r.unpinned || w.Build == "") {
		hint := "pin what you have checked: sha256 = \"…\""
		if data, err := readFile(r.dir, w.Path, MaxProgramBytes); err == nil {
			hint = "pin what you have checked: sha256 = \"" + digest(data) + "\""
		}
		r.faultKey(append(path, "abi"), path, "a native plugin needs its sha256", hint)
	}
}

// NativeMemory is the memory of a native plugin that says nothing else, in bytes.
const NativeMemory = 1 << 30

// maxBytes is how large a worker's plugin may be.
func (w *Worker) maxBytes() int64 {
	if w.ABI == runtime.ABIProcess {
		return MaxProgramBytes
	}
	return MaxPluginBytes
}

// env reads the environment of a plugin, which is a native one or a module.
func (r *reader) env(path []string, table map[string]any, native bool) map[string]string {
	env := map[string]string{}
	r.entries(path, table, func(at []string, name string, v any) {
		if err := checkVariable(name, native); err != nil {
			r.faultKey(at, path, err.Error(), jobhost.HintOf(err))
			return
		}
		s, ok := v.(string)
		if !ok {
			r.faultValue(at, mismatch(v, "put it in quotes"))
			return
		}
		if err := checkVariableText(s); err != nil {
			r.faultValue(at, err)
			return
		}
		env[name] = s
		r.warnSecret(at, name, s)
	})
	return env
}

// checkPlugin looks at the file: that it is one, and its digest if one is pinned.
func (r *reader) checkPlugin(path []string, w *Worker) {
	if r.tests || r.unbuilt && w.Build != "" {
		return
	}
	if w.SHA256 == "" || r.unpinned && w.Build != "" {
		if err := checkFile(r.dir, w.Path, w.maxBytes()); err != nil {
			r.faultValue(append(path, "plugin"), w.unbuilt(err))
		}
		return
	}
	data, err := readFile(r.dir, w.Path, w.maxBytes())
	if err != nil {
		r.faultValue(append(path, "plugin"), w.unbuilt(err))
	} else if got := digest(data); got != w.SHA256 {
		r.faultValue(append(path, "sha256"), wrong("restore the plugin, or pin that digest if the change is meant",
			"the plugin's digest is %s", got))
	}
}

// unbuilt says how to make a plugin that is not there, if that is known.
func (w *Worker) unbuilt(err error) error {
	e, ok := errors.AsType[*jobhost.Error](err)
	if !ok || e.Code != jobhost.CodeNotFound || w.Build == "" {
		return err
	}
	missing := *e
	missing.Hint = "build it in its folder: " + text.Line(w.Build, 300) + "; jobhost dev does that, and runs the host"
	return &missing
}

// retry reads [worker.NAME.retry]. A wrong value is not judged together with the others.
func (r *reader) retry(path []string, table map[string]any, p *jobhost.RetryPolicy) {
	before := len(r.faults)
	fill(r, path, table, retryFields(), p)
	if len(r.faults) > before {
		return
	}
	joined, _ := p.Check().(interface{ Unwrap() []error })
	if joined == nil {
		return
	}
	for _, err := range joined.Unwrap() {
		e, ok := errors.AsType[*jobhost.Error](err)
		if !ok {
			r.faultValue(path, err)
			continue
		}
		hint := ""
		if _, given := table[e.Field]; !given {
			hint = "it has its default"
		}
		r.faultValue(append(path, e.Field), wrong(hint, "%s", strings.TrimPrefix(e.Message, e.Field+" ")))
	}
}

// keyPattern is what entries of config and secrets may be called.
var keyPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

// entries calls read for each entry with a proper name, and bounds their number.
func (r *reader) entries(path []string, table map[string]any, read func(path []string, name string, v any)) {
	if len(table) > MaxEntries {
		r.faultKey(path, path, fmt.Sprintf("%d entries are more than %d", len(table), MaxEntries), "")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		at := append(slices.Clone(path), name)
		if !keyPattern.MatchString(name) {
			r.faultKey(at, path, text.Quote(name, text.Short)+" is not a name", "use 1 to 128 of A-Z a-z 0-9 . _ -")
			continue
		}
		read(at, name, table[name])
	}
}

func (r *reader) config(path []string, table map[string]any) map[string]string {
	config := map[string]string{}
	r.entries(path, table, func(at []string, name string, v any) {
		s, ok := v.(string)
		switch {
		case !ok:
			r.faultValue(at, mismatch(v, "config is text, which the plugin reads as it likes; put it in quotes"))
		case len(s) > MaxConfigBytes:
			r.faultValue(at, wrong("", "text of %d bytes is longer than %v", len(s), Size(MaxConfigBytes)))
		default:
			config[name] = s
			r.warnSecret(at, name, s)
		}
	})
	return config
}

// secretive are the last words of names whose value should not stand in a manifest.
var secretive = regexp.MustCompile(`(?i)(^|[._-])(password|passwd|passphrase|secret|token|api_?key|private_?key|credentials?)$`)

func (r *reader) warnSecret(at []string, name, value string) {
	if value == "" || !secretive.MatchString(name) {
		return
	}
	p, _ := r.positions.find(at)
	f := &Fault{
		File: r.file, Key: keyText(at), Message: "this looks like a secret, which anybody who reads the manifest sees",
		Hint: `move it below secrets, as { env = "NAME" } or { file = "PATH" }`,
	}
	f.Line, f.Column = r.positions.lineColumn(p.key)
	r.warnings = append(r.warnings, f)
}

func (r *reader) secrets(path []string, table map[string]any) map[string]Secret {
	secrets := map[string]Secret{}
	r.entries(path, table, func(at []string, name string, v any) {
		s, err := r.secret(v)
		if err != nil {
			r.faultValue(at, err)
			return
		}
		secrets[name] = s
	})
	return secrets
}

const secretHint = `write { env = "NAME" } or { file = "PATH" }`

var envPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// secret follows a reference to a secret. Its errors repeat paths and the names
// of variables, and nothing else that stands in the manifest: it may be the
// secret itself.
func (r *reader) secret(v any) (Secret, error) {
	ref, ok := v.(map[string]any)
	if !ok {
		return Secret{}, wrong(secretHint, "the secret itself must not stand in the manifest")
	}
	for key := range ref {
		if key != "env" && key != "file" {
			return Secret{}, wrong(secretHint, "%s is not a source of secrets", keyText([]string{key}))
		}
	}
	env, isEnv := ref["env"].(string)
	file, isFile := ref["file"].(string)
	switch {
	case len(ref) != 1 || !isEnv && !isFile:
		return Secret{}, wrong(secretHint, "a secret has one source, named as text")
	case r.tests:
		return Secret{env: env, file: file, value: new(FakeSecret)}, nil
	case r.beside:
		return Secret{env: env, file: file}, nil
	case isFile:
		return r.secretFile(file)
	case !envPattern.MatchString(env):
		return Secret{}, wrong(secretHint, "env is not the name of an environment variable")
	}
	value, set := r.lookup(env)
	switch {
	case !set:
		return Secret{}, wrong("set it where the host is started", "the environment variable %s is not set", env)
	case value == "":
		return Secret{}, wrong("", "the environment variable %s is empty", env)
	case len(value) > MaxSecretBytes:
		return Secret{}, wrong("", "the environment variable %s is longer than %v", env, Size(MaxSecretBytes))
	}
	return Secret{env: env, value: &value}, nil
}
