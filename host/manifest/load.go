package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

// Load reads the manifest at path. Relative paths in it start at its folder.
// The error is a [Faults] when the manifest can be read but is wrong, else a
// [jobhost.Error] that names the path.
func Load(path string) (*Manifest, error) { return load(path, options{}) }

// LoadUnbuilt is [Load] without a look at the plugins that the host can build:
// their files need not be there yet.
func LoadUnbuilt(path string) (*Manifest, error) {
	return load(path, options{unbuilt: true, unpinned: true})
}

// LoadUnpinned is [Load] without a look at the digests of plugins that the host can build:
// those that follow from a change of their sources are as meant.
func LoadUnpinned(path string) (*Manifest, error) { return load(path, options{unpinned: true}) }

// Again loads the manifest at path in the way in which this one was loaded.
func (m *Manifest) Again(path string) (*Manifest, error) {
	return load(path, options{unpinned: m.Unpinned})
}

func load(path string, opts options) (*Manifest, error) {
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	if opts.dir, err = filepath.Abs(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("find the manifest's folder: %w", err)
	}
	opts.lookup, opts.cpus = os.LookupEnv, cpus()
	return parse(path, data, opts)
}

// LoadForTests is [Load] for tests of one worker, which run where the plugins of
// others need not be there, nor any secrets: all of them are [FakeSecret].
func LoadForTests(path string) (*Manifest, error) {
	return load(path, options{tests: true, unpinned: true})
}

// FakeSecret is the value of every secret of a manifest that was loaded for tests:
// such that it can be the key of a webhook's signature too.
const FakeSecret = "whsec_ZmFrZSBzZWNyZXQgb2YgYSB0ZXN0IG9mIGEgd29ya2Vy"

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, &jobhost.Error{
			Code:    jobhost.CodeInvalid,
			Message: fmt.Sprintf("read manifest: %s is a folder", text.Quote(path, text.Short)),
			Hint:    "name the file in it, such as " + text.Quote(filepath.Join(path, "manifest.toml"), text.Short),
		}
	}
	// One byte more than allowed, so that Parse sees when there are more.
	data, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, unreadable(path, err)
	}
	return data, nil
}

func unreadable(path string, err error) error {
	e := &jobhost.Error{Code: jobhost.CodeInternal, Message: "read manifest " + text.Quote(path, text.Short), Cause: err}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Code, e.Message, e.Cause = jobhost.CodeNotFound, fmt.Sprintf("read manifest: %s does not exist", text.Quote(path, text.Short)), nil
		e.Hint = "run this in the folder of one, or name it with -f; jobhost worker new makes a project with one"
	case errors.Is(err, fs.ErrPermission):
		e.Code, e.Message, e.Cause = jobhost.CodeDenied, fmt.Sprintf("read manifest: no permission to read %s", text.Quote(path, text.Short)), nil
	}
	return e
}

// Parse reads a manifest from memory. name is what its faults call the file,
// and relative paths start at dir. It looks at the files that the manifest
// names and at the environment variables of its secrets. The error is a
// [Faults].
func Parse(name string, data []byte, dir string) (*Manifest, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find the manifest's folder: %w", err)
	}
	return parse(name, data, options{dir: dir, lookup: os.LookupEnv, cpus: cpus()})
}

// options are what the meaning of a manifest depends on besides its text.
type options struct {
	dir    string
	lookup func(string) (string, bool)
	cpus   int
	// unbuilt leaves out the files of plugins that have a build.
	unbuilt bool
	// unpinned leaves out their digests.
	unpinned bool
	// tests leaves out the files of all plugins, and gives all secrets one value.
	tests bool
	// beside leaves out the values of secrets: they are for the host itself.
	beside bool
}

func parse(name string, data []byte, opts options) (*Manifest, error) {
	text := string(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	r := &reader{options: opts, file: name, positions: newPositions(text)}
	if doc := r.decode(text); doc != nil {
		m := r.manifest(doc)
		if len(r.faults) == 0 {
			m.Warnings = r.warnings.settle(name)
			return m, nil
		}
	}
	return nil, r.faults.settle(name)
}

// decode reads the text as TOML and notes where everything stands; nil after a fault.
func (r *reader) decode(text string) map[string]any {
	if len(text) > MaxBytes {
		r.faultAt(-1, "", fmt.Sprintf("the manifest is larger than %v", Size(MaxBytes)), "")
		return nil
	}
	if !utf8.ValidString(text) {
		r.faultAt(firstInvalid(text), "", "the manifest is not valid UTF-8", "save it as UTF-8")
		return nil
	}
	s := scan(text)
	if s.limit != "" {
		r.faultAt(s.limitAt, "", s.limit, "")
		return nil
	}
	doc := map[string]any{}
	meta, err := toml.Decode(text, &doc)
	if err != nil {
		r.syntax(err)
		return nil
	}
	keys := meta.Keys()
	if len(keys) == 0 && !r.beside {
		r.faultAt(-1, "", "the manifest is empty", "it needs at least a worker: [worker.NAME] with a plugin")
		return nil
	}
	number := numberer{}
	for i, key := range keys[:min(len(keys), len(s.places))] {
		r.positions.note(number.path(key, s.places[i], text), s.places[i])
	}
	return doc
}

// syntax reports what the TOML library could not read. It stops at the first such thing.
func (r *reader) syntax(err error) {
	at, message := -1, err.Error()
	if pe, ok := errors.AsType[toml.ParseError](err); ok {
		at, message = pe.Position.Start, pe.Message
	}
	// The library's sentences come in two styles.
	if first, rest, _ := strings.Cut(message, " "); first == "Key" || first == "Invalid" {
		message = strings.ToLower(first) + " " + strings.TrimSuffix(rest, ".")
	}
	r.faultAt(at, "", text.Line(message, 300), "")
}

func firstInvalid(text string) int {
	for i, r := range text {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(text[i:]); n == 1 {
				return i
			}
		}
	}
	return -1
}
