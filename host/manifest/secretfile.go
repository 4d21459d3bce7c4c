package manifest

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/jobhost/jobhost/internal/text"
)

// secretFile reads a file; one line end at its end is not part of the secret.
func (r *reader) secretFile(path string) (Secret, error) {
	abs, err := resolveWithin(r.dir, path)
	if err != nil {
		return Secret{}, err
	}
	if err := r.checkMode(abs); err != nil {
		return Secret{}, err
	}
	data, err := readFile(r.dir, abs, MaxSecretBytes)
	if err != nil {
		return Secret{}, err
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	if value == "" {
		return Secret{}, wrong("", "%s is empty", text.Quote(path, text.Short))
	}
	return Secret{file: abs, value: &value}, nil
}

// Who may use the file of a secret besides its owner. A group may read it: that is how
// files are often handed to a service.
const (
	othersWrite fs.FileMode = 0o022
	worldReads  fs.FileMode = 0o004
)

// checkMode refuses the file of a secret that others could have written, and warns of one that every
// user of the machine may read.
func (r *reader) checkMode(path string) error {
	f, err := openFile(r.dir, path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return fileError(showPath(r.dir, path), err)
	}
	name, mode := showPath(r.dir, path), info.Mode().Perm()
	if mode&othersWrite != 0 {
		return wrong(fmt.Sprintf("chmod 600 %s; use another secret, if others may have written this one", text.Quote(name, text.Short)),
			"%s may be written by others than its owner (mode %04o)", text.Quote(name, text.Short), mode)
	}
	if mode&worldReads != 0 {
		r.warnings = append(r.warnings, &Fault{
			File: r.file, Message: fmt.Sprintf("the secret in %s may be read by every user of this machine (mode %04o)", text.Quote(name, text.Short), mode),
			Hint: "chmod 600 " + text.Quote(name, text.Short),
		})
	}
	return nil
}
