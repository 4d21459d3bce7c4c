package test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
)

// Under any umask, the files, folders and sockets that a host, a backup and a restore create may
// be used only by their user, even in a folder that others may enter.
func TestFilesAreForTheirOwner(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.write("cat.wasm", guests.Cat)
	s.write("manifest.toml", []byte(s.manifest()+`
[worker.cat]
plugin = "cat.wasm"
sandbox = "process"
`))
	for _, dir := range []string{"data", "tmp"} {
		s.openFolder(dir)
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	s.program = []string{"sh", "-c", "umask 000; TMPDIR=$PWD/tmp exec " + path + " run -f manifest.toml"}
	host := s.start()
	for id, payload := range map[string][]byte{"small": []byte("x"), "large": bytes.Repeat([]byte("x"), 500_000)} {
		if _, err := host.Submit(t.Context(), jobhost.Spec{Worker: "cat", ID: id, Payload: payload}); err != nil {
			t.Fatal(err)
		}
		if job, err := host.Wait(t.Context(), id); err != nil || job.State != jobhost.Succeeded {
			t.Fatalf("got %+v, %v", job, err)
		}
	}
	s.wantPrivate("data", "tmp")
	s.shell("umask 000; " + path + " backup -f manifest.toml copy")
	s.wantPrivate("copy")
	if code := host.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.wantPrivate("data", "tmp")
}

// openFolder makes a folder that everybody may use.
func (s *site) openFolder(name string) {
	s.t.Helper()
	dir := filepath.Join(s.dir, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // as an operator may have done
		s.t.Fatal(err)
	}
}

// shell runs a command in the site's folder.
func (s *site) shell(command string) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "sh", "-c", command)
	cmd.Dir = s.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// wantPrivate checks all that lies in folders of the site.
func (s *site) wantPrivate(folders ...string) {
	s.t.Helper()
	seen := 0
	for _, folder := range folders {
		root := filepath.Join(s.dir, folder)
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || path == root && d.IsDir() && folder != "copy" {
				return err
			}
			info, err := d.Info()
			if os.IsNotExist(err) {
				return nil
			}
			if err != nil {
				return err
			}
			if seen++; info.Mode().Perm()&0o077 != 0 && info.Mode()&fs.ModeSymlink == 0 {
				s.t.Errorf("%s has the mode %v", path, info.Mode())
			}
			return nil
		})
		if err != nil && !os.IsNotExist(err) {
			s.t.Fatal(err)
		}
	}
	if seen == 0 {
		s.t.Error(fmt.Sprint("there is nothing in ", folders))
	}
}
