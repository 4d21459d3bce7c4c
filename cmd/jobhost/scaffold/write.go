package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jobhost/jobhost"
)

// Write puts the files into a folder, which is made, or is there and empty. What is there already is left alone;
// with an error nothing stays of what was written.
func Write(dir string, files []File) error {
	entries, err := os.ReadDir(dir)
	made := errors.Is(err, fs.ErrNotExist)
	switch {
	case made:
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return fmt.Errorf("make the project's folder: %w", err)
		}
	case err != nil:
		return fmt.Errorf("look into the project's folder: %w", err)
	case len(entries) > 0:
		return &jobhost.Error{
			Code: jobhost.CodeConflict, Message: fmt.Sprintf("the folder %s is not empty", dir), Hint: "name another one by --dir",
		}
	}
	for i := range files {
		if err := write(dir, &files[i]); err != nil {
			return errors.Join(fmt.Errorf("write the project: %w", err), remove(dir, made, files[:i]))
		}
	}
	return nil
}

// write writes a file that must be new. Who else may read it is for the umask to say.
func write(dir string, f *File) (err error) {
	name := filepath.Join(dir, filepath.FromSlash(f.Path))
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	mode := fs.FileMode(0o666)
	if f.Executable {
		mode = 0o777
	}
	out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = out.Write(f.Data)
	return errors.Join(err, out.Close())
}

// remove takes back what was written.
func remove(dir string, made bool, written []File) error {
	if made {
		return os.RemoveAll(dir)
	}
	var errs []error
	for i := range written {
		errs = append(errs, os.Remove(filepath.Join(dir, filepath.FromSlash(written[i].Path))))
	}
	return errors.Join(errs...)
}
