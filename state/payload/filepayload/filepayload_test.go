package filepayload_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jobhost/jobhost/state/payload"
	"github.com/jobhost/jobhost/state/payload/filepayload"
	"github.com/jobhost/jobhost/state/payload/payloadtest"
)

// places knows the folders of the suite's stores.
type places struct{ m sync.Map }

func (p *places) open(t testing.TB, dir string) payload.Store {
	t.Helper()
	s, err := filepayload.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	p.m.Store(s, dir)
	return s
}

func (p *places) of(s payload.Store) string {
	dir, _ := p.m.Load(s)
	return dir.(string)
}

// files returns the files below a folder of a store.
func files(t testing.TB, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return names
}

func TestStore(t *testing.T) {
	var p places
	payloadtest.Run(t, payloadtest.Harness{
		Open: func(t testing.TB) payload.Store { return p.open(t, filepath.Join(t.TempDir(), "payloads")) },
		Again: func(t testing.TB, s payload.Store) payload.Store {
			_ = s.Close()
			return p.open(t, p.of(s))
		},
		Damage: func(t testing.TB, s payload.Store, key string) {
			for _, name := range files(t, p.of(s)) {
				if filepath.Base(name) != key {
					continue
				}
				data, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				data[len(data)/2] ^= 1
				if err := os.WriteFile(name, data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		},
		Left: func(t testing.TB, s payload.Store) (left []string) {
			for _, name := range files(t, filepath.Join(p.of(s), "tmp")) {
				if filepath.Base(name) != "owner" {
					left = append(left, name)
				}
			}
			return left
		},
	})
}

func setup(t *testing.T) (s *filepayload.Store, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "payloads")
	s, err := filepayload.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, dir
}

func put(t *testing.T, s payload.Store, text string) string {
	t.Helper()
	key := payload.NewKey(time.Now())
	o, err := s.Create(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(o, text); err != nil {
		t.Fatal(err)
	}
	if err := o.Commit(); err != nil {
		t.Fatal(err)
	}
	return key
}

func TestModes(t *testing.T) {
	t.Parallel()
	s, dir := setup(t)
	put(t, s, "private")
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if err == nil && info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", name, info.Mode().Perm(), want)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTornFiles shows that what a process had begun to write is removed when it
// is gone, and left alone while it is there.
func TestTornFiles(t *testing.T) {
	t.Parallel()
	s, dir := setup(t)
	o, err := s.Create(t.Context(), payload.NewKey(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(o, "half of"); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, "tmp", "of-a-process-that-is-gone")
	if err := errors.Join(os.Mkdir(left, 0o700), os.WriteFile(filepath.Join(left, "owner"), nil, 0o600),
		os.WriteFile(filepath.Join(left, payload.NewKey(time.Now())), []byte("half"), 0o600)); err != nil {
		t.Fatal(err)
	}
	other, err := filepayload.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the torn file is there: %v", err)
	}
	if err := o.Commit(); err != nil {
		t.Errorf("the other process: %v", err)
	}
}

func TestCopy(t *testing.T) {
	t.Parallel()
	s, dir := setup(t)
	key := put(t, s, "to be kept")
	release, err := filepayload.Hold(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), []string{key}); !errors.Is(err, payload.ErrBusy) {
		t.Errorf("deleted while it was held: %v", err)
	}
	to := filepath.Join(t.TempDir(), "copy")
	for range 2 { // a copy can be completed
		if n, err := filepayload.Copy(t.Context(), dir, to); n != 1 || err != nil {
			t.Fatalf("copied %d objects, %v", n, err)
		}
	}
	release()
	if err := s.Delete(t.Context(), []string{key}); err != nil {
		t.Fatal(err)
	}
	again, err := filepayload.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	r, err := again.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); string(got) != "to be kept" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestCopyNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "none")
	release, err := filepayload.Hold(dir)
	if err != nil {
		t.Fatal(err)
	}
	release()
	if n, err := filepayload.Copy(context.Background(), dir, t.TempDir()); n != 0 || err != nil {
		t.Errorf("copied %d objects, %v", n, err)
	}
}

// TestLinks shows that no link in the folder leads out of it, nor when an object is copied from a folder that others may have made.
func TestLinks(t *testing.T) {
	t.Parallel()
	s, dir := setup(t)
	key := put(t, s, "x")
	secret := filepath.Join(t.TempDir(), "secret")
	name := filepath.Join(dir, "objects", key[:7], key)
	if err := errors.Join(os.WriteFile(secret, []byte("secret"), 0o600), os.Remove(name), os.Symlink(secret, name)); err != nil {
		t.Fatal(err)
	}
	for how, open := range map[string]func() (io.ReadCloser, error){
		"store": func() (io.ReadCloser, error) { return s.Open(t.Context(), key) },
		"copy":  func() (io.ReadCloser, error) { return filepayload.OpenObject(dir, key) },
	} {
		r, err := open()
		if err == nil {
			r.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "escapes") {
			t.Errorf("%s: got %v", how, err)
		}
	}
}

// What lies in the place of an object and is no file is damage, and blocks no reader.
func TestNamedPipeInThePlaceOfAnObject(t *testing.T) {
	t.Parallel()
	s, dir := setup(t)
	key := put(t, s, "text")
	for _, name := range files(t, dir) {
		if filepath.Base(name) != key {
			continue
		}
		if err := errors.Join(os.Remove(name), syscall.Mkfifo(name, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Open(t.Context(), key); !errors.Is(err, payload.ErrCorrupt) {
		t.Errorf("opened, %v", err)
	}
}
