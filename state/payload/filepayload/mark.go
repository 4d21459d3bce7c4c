package filepayload

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/jobhost/jobhost/state/payload"
)

const marksDir = "marks"

var _ payload.Marker = (*Store)(nil)

// SetMark implements [payload.Marker].
func (s *Store) SetMark(_ context.Context, name string, text []byte) error {
	if err := payload.CheckName(name); err != nil {
		return err
	}
	if err := s.mkdir(marksDir); err != nil {
		return err
	}
	tmp := path.Join(s.tmp, "mark-"+rand.Text())
	f, err := s.root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return s.root.Rename(tmp, path.Join(marksDir, name))
}

// Mark implements [payload.Marker].
func (s *Store) Mark(_ context.Context, name string) ([]byte, error) {
	f, err := s.root.Open(path.Join(marksDir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, payload.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, payload.MaxMarkBytes))
}
