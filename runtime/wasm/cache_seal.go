package wasm

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// A seal is an HMAC-SHA-256, with the cache's key, of the folder's digest and
// everything in the folder: names, sizes and content. The digest stands for the
// module, the versions and the machine, so a seal contains nothing that would
// have to be parsed before it is verified.
const sealName = "seal"

// Limits on the content of a folder; more is damage.
const (
	maxSealedFiles = 1000
	maxSealedBytes = 1 << 30
)

// sealedFile is a file or folder that a seal covers.
type sealedFile struct {
	name string // relative to the folder, with slashes
	mode fs.FileMode
	size int64 // 0 for a folder
}

// check verifies the folder's seal, or says why it has no valid one.
func (f *folder) check() error {
	files, err := f.list()
	if err != nil {
		return err
	}
	seal, err := readSmall(filepath.Join(f.path, sealName), sha256.Size)
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(files) == 0:
		return errEmpty
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("it has no seal: compiling was interrupted, or the seal was removed")
	case err != nil:
		return err
	}
	sum, err := f.mac(files)
	if err != nil {
		return err
	}
	if !hmac.Equal(seal, sum) {
		return errors.New("its content does not fit its seal: it was changed, or comes from elsewhere")
	}
	f.files = len(files)
	return nil
}

// seal seals the current content of the folder.
func (f *folder) seal() error {
	files, err := f.list()
	if err != nil {
		return err
	}
	sum, err := f.mac(files)
	if err != nil {
		return err
	}
	// If this is interrupted, the seal doesn't match what is left.
	temp := filepath.Join(f.path, sealName+".tmp")
	file, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(sum)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(temp, filepath.Join(f.path, sealName))
}

// list lists the content of the folder, sorted by name, without the seal.
func (f *folder) list() (files []sealedFile, err error) {
	total := int64(0)
	err = filepath.WalkDir(f.path, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == f.path || path == filepath.Join(f.path, sealName) {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(f.path, path)
		if err != nil {
			return err
		}
		file := sealedFile{name: filepath.ToSlash(name), mode: info.Mode().Type()}
		if !info.IsDir() {
			file.size = info.Size()
		}
		files = append(files, file)
		total += file.size
		if len(files) > maxSealedFiles || total > maxSealedBytes {
			return fmt.Errorf("it has more than %d files or %d bytes", maxSealedFiles, int64(maxSealedBytes))
		}
		if !info.IsDir() && !info.Mode().IsRegular() {
			return fmt.Errorf("%s is neither a file nor a folder", file.name)
		}
		return checkOwn(file.name, info)
	})
	return files, err
}

// mac computes the seal of files.
func (f *folder) mac(files []sealedFile) ([]byte, error) {
	h := hmac.New(sha256.New, f.cache.key)
	addFrame(h, f.digest, uint64(len(files)))
	buf := make([]byte, 256<<10)
	for _, file := range files {
		addFrame(h, file.name, uint64(file.mode))
		if file.mode.IsDir() {
			continue
		}
		addFrame(h, "", uint64(file.size))
		if err := addContent(h, filepath.Join(f.path, filepath.FromSlash(file.name)), file.size, buf); err != nil {
			return nil, err
		}
	}
	return h.Sum(nil), nil
}

// addFrame adds a text and a number unambiguously.
func addFrame(h hash.Hash, text string, number uint64) {
	b := binary.BigEndian.AppendUint64(nil, uint64(len(text)))
	b = append(b, text...)
	_, _ = h.Write(binary.BigEndian.AppendUint64(b, number))
}

// addContent adds the content of a file, which must have that size.
func addContent(h hash.Hash, path string, size int64, buf []byte) error {
	file, err := openPrivate(path)
	if err != nil {
		return err
	}
	defer file.Close()
	n, err := io.CopyBuffer(struct{ io.Writer }{h}, io.LimitReader(file, size+1), buf)
	if err == nil && n != size {
		err = fmt.Errorf("%s changes while it is read", filepath.Base(path))
	}
	return err
}
