package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
	"github.com/jobhost/jobhost/runtime"
)

// Two rules for paths. Whatever the host only reads because the manifest says
// so (plugins, files of secrets) lies below the manifest's folder, links
// included, unless its path is written absolute. Where the host writes (store,
// data, token) is the operator's business and may be anywhere.

// ReadPlugin returns the bytes of a worker's plugin. The rules for its path
// and its digest, if the manifest pins one, are checked on what is read here,
// whatever the file was when the manifest was loaded.
func (m *Manifest) ReadPlugin(w *Worker) ([]byte, error) {
	data, err := readFile(m.Dir, w.Path, w.maxBytes())
	if err != nil {
		return nil, fmt.Errorf("read the plugin of worker %s: %w", w.Name, w.unbuilt(err))
	}
	if got := digest(data); w.SHA256 != "" && got != w.SHA256 && (!m.Unpinned || w.Build == "") {
		return nil, &jobhost.Error{
			Code:    jobhost.CodeDenied,
			Field:   "sha256",
			Message: fmt.Sprintf("the plugin of worker %s has the digest %s, not the one that the manifest pins", w.Name, got),
			Hint:    "restore the plugin, or pin the new digest if the change is meant",
		}
	}
	return data, nil
}

// ReadModule reads a module that a file in dir names by its path: below dir, or
// absolute.
func ReadModule(dir, path string) ([]byte, error) {
	abs, err := resolveWithin(dir, path)
	if err != nil {
		return nil, err
	}
	return readFile(dir, abs, MaxPluginBytes)
}

// ParseMount reads a mount as workers have it, FOLDER:PATH or FOLDER:PATH:rw;
// relative folders start at dir.
func ParseMount(dir, text string) (runtime.Mount, error) { return mount(dir, text) }

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// resolve makes a path absolute; relative ones start at dir.
func resolve(dir, path string) (string, error) {
	switch {
	case path == "":
		return "", wrong("", "the path is empty")
	case strings.ContainsRune(path, 0):
		return "", wrong("", "the path has a NUL byte")
	case len(path) > 4096:
		return "", wrong("", "the path of %d bytes is longer than 4096", len(path))
	case filepath.IsAbs(path):
		return filepath.Clean(path), nil
	}
	return filepath.Join(dir, path), nil
}

// resolveWithin is resolve for files that the host reads.
func resolveWithin(dir, path string) (string, error) {
	abs, err := resolve(dir, path)
	if err == nil && !filepath.IsAbs(path) && !filepath.IsLocal(path) {
		return "", wrong("keep it below that folder, or write an absolute path", "%s leads out of the manifest's folder", text.Quote(path, text.Short))
	}
	return abs, err
}

// below returns the path relative to dir, if it lies inside.
func below(dir, path string) (string, bool) {
	rel, err := filepath.Rel(dir, path)
	return rel, err == nil && filepath.IsLocal(rel)
}

// showPath is the reverse of resolve.
func showPath(dir, path string) string {
	if rel, ok := below(dir, path); ok {
		return rel
	}
	return path
}

// pathTo is a path that [resolve] or [resolveWithin] makes absolute.
func pathTo(p *string, dir, example string, resolve func(dir, path string) (string, error)) setting {
	return parsed(example,
		func(s string) error {
			abs, err := resolve(dir, s)
			if err == nil {
				*p = abs
			}
			return err
		},
		func() string { return showPath(dir, *p) })
}

func store(dir string, p *Store) setting {
	const hint = `use "sqlite:FOLDER", such as "sqlite:./data", "postgres://USER@HOST/DATABASE" to share it, or "mem:" to keep nothing`
	return parsed("sqlite:./data",
		func(s string) error {
			driver, rest, _ := strings.Cut(s, ":")
			switch {
			case s == "mem:":
				*p = Store{Driver: "mem"}
			case driver == "sqlite" && rest != "" && !strings.HasPrefix(rest, "//"): // sqlite://data is not /data
				abs, err := resolve(dir, rest)
				if err != nil {
					return err
				}
				*p = Store{Driver: driver, Dir: abs}
			case (driver == Postgres || driver == "postgresql") && strings.HasPrefix(rest, "//"):
				shared, err := postgresStore(s)
				if err != nil {
					return err
				}
				*p = shared
			default:
				// Only the scheme: what follows may hold a password.
				return wrong(hint, "%s is not a store", text.Quote(driver+":", text.Short))
			}
			return nil
		},
		func() string {
			switch {
			case p.URL != "":
				return p.URL
			case p.Dir == "":
				return p.Driver + ":"
			}
			path := showPath(dir, p.Dir)
			if path != p.Dir {
				path = "./" + path
			}
			return p.Driver + ":" + path
		})
}

// checkFile does all of readFile but the reading.
func checkFile(dir, path string, most int64) error {
	f, err := openFile(dir, path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return fileError(showPath(dir, path), err)
	}
	return checkLength(showPath(dir, path), info.Size(), most)
}

// readFile reads a regular file of at most so many bytes that is not empty.
// Below dir it follows no link that leads out.
func readFile(dir, path string, most int64) ([]byte, error) {
	f, err := openFile(dir, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fileError(showPath(dir, path), err)
	}
	if err := checkLength(showPath(dir, path), int64(len(data)), most); err != nil {
		return nil, err
	}
	return data, nil
}

func checkLength(name string, n, most int64) error {
	switch {
	case n == 0:
		return wrong("", "%s is empty", text.Quote(name, text.Short))
	case n > most:
		return wrong("", "%s is larger than %v", text.Quote(name, text.Short), Size(most))
	}
	return nil
}

func openFile(dir, path string) (*os.File, error) {
	name := showPath(dir, path)
	f, err := openBelow(dir, path)
	if err != nil {
		info, plain := os.Stat(path)
		switch {
		case plain != nil || errors.Is(err, fs.ErrPermission):
			return nil, fileError(name, err)
		case !info.Mode().IsRegular(): // a socket, say, cannot be opened at all
			return nil, notFile(name, info.Mode())
		}
		// os.Root has no error to compare for an escape, but a file that can
		// be reached only without it is one.
		return nil, wrong("put the file itself there, or write its absolute path",
			"%s is or goes through a link that leads out of the manifest's folder", text.Quote(name, text.Short))
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notFile(name, info.Mode())
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func notFile(name string, mode fs.FileMode) error {
	return wrong("", "%s is %s, not a file", text.Quote(name, text.Short), modeName(mode))
}

func openBelow(dir, path string) (*os.File, error) {
	// Without O_NONBLOCK the open of a named pipe would wait for a writer.
	const flags = os.O_RDONLY | syscall.O_NONBLOCK
	rel, ok := below(dir, path)
	if !ok {
		return os.OpenFile(path, flags, 0)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return root.OpenFile(rel, flags, 0)
}

func fileError(name string, err error) error {
	e := &jobhost.Error{Code: jobhost.CodeInvalid, Message: "cannot read " + text.Quote(name, text.Short), Cause: err}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Code, e.Message, e.Cause = jobhost.CodeNotFound, text.Quote(name, text.Short)+" does not exist", nil
		e.Hint = "relative paths start at the manifest's folder"
	case errors.Is(err, fs.ErrPermission):
		e.Code, e.Message, e.Cause = jobhost.CodeDenied, "no permission to read "+text.Quote(name, text.Short), nil
	}
	return e
}

func modeName(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "something special"
}
